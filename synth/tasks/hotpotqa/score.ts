/*
 * Exact match and F1 as in HotpotQA's evaluation (hotpot_evaluate_v1.py): lower case, ASCII punctuation and articles
 * dropped, white space folded; yes and no count whole or not at all.
 */

const PUNCTUATION = /[!-/:-@[-`{-~]/gu;
// Python's \b goes by Unicode letters, JavaScript's by ASCII ones.
const ARTICLE = /(?<![\p{L}\p{N}_])(?:a|an|the)(?![\p{L}\p{N}_])/gu;

export function normalizeAnswer(text: string): string {
  return text.toLowerCase().replace(PUNCTUATION, "").replace(ARTICLE, " ").trim().split(/\s+/u).join(" ");
}

export function exactMatch(prediction: string, truth: string): boolean {
  return normalizeAnswer(prediction) === normalizeAnswer(truth);
}

const WHOLE = new Set(["yes", "no", "noanswer"]);

export interface F1 {
  readonly f1: number;
  readonly precision: number;
  readonly recall: number;
}

const NOTHING: F1 = { f1: 0, precision: 0, recall: 0 };

export function f1Score(prediction: string, truth: string): F1 {
  const [predicted, expected] = [normalizeAnswer(prediction), normalizeAnswer(truth)];
  if ((WHOLE.has(predicted) || WHOLE.has(expected)) && predicted !== expected) return NOTHING;
  const [tokens, wanted] = [tokensOf(predicted), tokensOf(expected)];
  const left = new Map<string, number>();
  for (const token of wanted) left.set(token, (left.get(token) ?? 0) + 1);
  let same = 0;
  for (const token of tokens) {
    const count = left.get(token) ?? 0;
    if (count === 0) continue;
    left.set(token, count - 1);
    same++;
  }
  if (same === 0) return NOTHING;
  const [precision, recall] = [same / tokens.length, same / wanted.length];
  return { f1: (2 * precision * recall) / (precision + recall), precision, recall };
}

const tokensOf = (text: string): string[] => (text === "" ? [] : text.split(" "));
