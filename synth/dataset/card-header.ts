import { parse, stringify } from "yaml";
import { z } from "zod";
import { RootstepError } from "../../src/errors.ts";
import { SPLITS, type Split } from "./dataset.ts";

/** Where a folder keeps each split in one format. */
export type SplitFiles = Readonly<Record<Split, string>>;

export interface CardHeader {
  readonly prettyName: string;
  readonly licence: string;
  readonly records: number;
  readonly tags: readonly string[];
  readonly files: { readonly parquet: SplitFiles; readonly jsonl: SplitFiles };
}

/** The files of a run's dataset folder, and of a folder as the Hugging Face hub names them. */
export const RUN_FILES: CardHeader["files"] = {
  parquet: { train: "train.parquet", test: "test.parquet" },
  jsonl: { train: "train.jsonl", test: "test.jsonl" },
};
export const HUB_FILES: CardHeader["files"] = {
  parquet: { train: "data/train-00000-of-00001.parquet", test: "data/test-00000-of-00001.parquet" },
  jsonl: { train: "jsonl/train.jsonl", test: "jsonl/test.jsonl" },
};

/** The hub's names of the licences that task sets have; any other is given by name as `other`. */
const HUB_LICENCES: Readonly<Record<string, string>> = {
  MIT: "mit",
  "Apache-2.0": "apache-2.0",
  "CC BY 4.0": "cc-by-4.0",
  "CC BY-SA 4.0": "cc-by-sa-4.0",
  "CC BY-NC 4.0": "cc-by-nc-4.0",
};

const SIZES = [1e3, 1e4, 1e5, 1e6, 1e7] as const;
const SIZE_NAMES = ["n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M"] as const;

/** The hub's size category of so many records. */
export function sizeCategory(records: number): string {
  return SIZE_NAMES[SIZES.filter((size) => records >= size).length] ?? "n>100M";
}

/** The YAML block at the head of a dataset card. */
export function cardHeader({ prettyName, licence, records, tags, files }: CardHeader): string {
  const known = HUB_LICENCES[licence];
  const header = {
    pretty_name: prettyName,
    ...(known === undefined ? { license: "other", license_name: licence } : { license: known }),
    language: ["en"],
    task_categories: ["other"],
    tags,
    size_categories: [sizeCategory(records)],
    ...filesNamed(files),
  };
  return `---\n${stringify(header, { lineWidth: 0 })}---\n`;
}

/**
 * Parquet is what `load_dataset` loads: its columns have one type each, which JSON Lines with free `extra` fields have not.
 * The JSON Lines stand under a key of our own: `datasets` reads every configuration of a folder with one reader, that of
 * the first (5.2.0, `LocalDatasetModuleFactory`), so a second one in another form could not be loaded.
 */
function filesNamed({ parquet, jsonl }: CardHeader["files"]) {
  const dataFiles = (files: SplitFiles) => SPLITS.map((split) => ({ split, path: files[split] }));
  return {
    configs: [{ config_name: "default", default: true, data_files: dataFiles(parquet) }],
    tracertraj: { jsonl: dataFiles(jsonl) },
  };
}

const dataFilesSchema = z.array(z.looseObject({ split: z.string(), path: z.string() }));

const headerSchema = z.looseObject({
  license: z.string(),
  configs: z.array(z.looseObject({ config_name: z.string(), data_files: dataFilesSchema })),
  tracertraj: z.looseObject({ jsonl: dataFilesSchema }),
});
export type ReadHeader = z.infer<typeof headerSchema>;

/** @throws RootstepError DATA_INVALID for a card without a readable header */
export function readCardHeader(card: string, where: string): { readonly header: ReadHeader; readonly body: string } {
  const [, yaml, body] = /^---\n([\s\S]*?\n)---\n([\s\S]*)$/u.exec(card) ?? [];
  if (yaml === undefined || body === undefined) {
    throw new RootstepError("DATA_INVALID", { what: "the card has no YAML block at its head", where });
  }
  let raw: unknown;
  try {
    raw = parse(yaml);
  } catch (cause) {
    throw new RootstepError("DATA_INVALID", { what: "the card's head is not YAML", where, cause });
  }
  const parsed = headerSchema.safeParse(raw);
  if (!parsed.success) {
    throw new RootstepError("DATA_INVALID", { what: `the card's head: ${z.prettifyError(parsed.error)}`, where });
  }
  return { header: parsed.data, body };
}

/** The card of the same records under other file names. @throws RootstepError DATA_INVALID */
export function withFiles(card: string, files: CardHeader["files"], where: string): string {
  const { header, body } = readCardHeader(card, where);
  return `---\n${stringify({ ...header, ...filesNamed(files) }, { lineWidth: 0 })}---\n${body}`;
}
