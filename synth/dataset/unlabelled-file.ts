/** Failed runs without a label, beside `dataset/` and never in it: to look into, or to have attributed for a prior. */
export const UNLABELLED_FILE = "unlabelled.jsonl";
