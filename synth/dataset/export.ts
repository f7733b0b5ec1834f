import { existsSync } from "node:fs";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { RootstepError } from "../../src/errors.ts";
import { replaceWhole } from "../../src/formats/files.ts";
import { type Loss, lossCollector } from "../../src/formats/format.ts";
import { writeJsonLines } from "../../src/formats/jsonl.ts";
import { readTracerTraj } from "../../src/formats/tracertraj/read.ts";
import { writeTracerTraj } from "../../src/formats/tracertraj/write.ts";
import { writeWhoAndWhen } from "../../src/formats/who-and-when/write.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { HUB_FILES, withFiles } from "./card-header.ts";
import { fineTuningRecord, type Lesson, lessonOf, shareGptRecord } from "./conversations.ts";
import { SPLITS, type Split } from "./dataset.ts";
import { type DatasetFolder, openDatasetFolder } from "./folder.ts";
import { tracerTrajParquet } from "./parquet.ts";
import { EVIDENCE_FILE } from "./write.ts";

export const EXPORT_TARGETS = ["parquet", "huggingface", "sharegpt", "openai", "who-and-when"] as const;
export type ExportTarget = (typeof EXPORT_TARGETS)[number];

export interface ExportOptions {
  /** A run folder of `synth run`, or a dataset folder. */
  readonly from: string;
  readonly to: ExportTarget;
  /** A folder that is not there yet. */
  readonly out: string;
  /** Characters of log in a prompt. */
  readonly logBudget: number;
}

export interface Exported {
  readonly to: ExportTarget;
  readonly out: string;
  readonly written: Readonly<Record<Split, number>>;
  /** Records that the target cannot take, by reason. */
  readonly leftOut: Readonly<Record<string, number>>;
  /** What of the written records the target cannot hold. */
  readonly losses: readonly Loss[];
}

type Splits = Readonly<Record<Split, readonly Trajectory[]>>;

/** What one target makes of a dataset: it fills a folder. */
interface Job {
  readonly folder: DatasetFolder;
  readonly splits: Splits;
  readonly target: string;
  readonly logBudget: number;
  readonly onLoss: (loss: Loss) => void;
  readonly leaveOut: (reason: string) => void;
}

const WRITERS: Readonly<Record<ExportTarget, (job: Job) => Promise<Record<Split, number>>>> = {
  parquet: (job) => toParquet(job, { train: "train.parquet", test: "test.parquet" }),
  huggingface: toHub,
  sharegpt: (job) => toLessons(job, shareGptRecord),
  openai: (job) => toLessons(job, fineTuningRecord),
  "who-and-when": toWhoAndWhen,
};

/**
 * Writes a dataset in another form, into a new folder that appears whole or not at all.
 *
 * @throws RootstepError USAGE (the folder is there already), FILE_MISSING, DATA_… for a dataset that cannot be read
 */
export async function exportDataset({ from, to, out, logBudget }: ExportOptions): Promise<Exported> {
  if (existsSync(out)) {
    const hint = "Choose another --out folder, or remove that one.";
    throw new RootstepError("USAGE", {
      what: "an export overwrites nothing, and this is there already",
      where: out,
      hint,
    });
  }
  const folder = await openDatasetFolder(from);
  const splits = { train: await read(folder, "train"), test: await read(folder, "test") };
  const { onLoss, losses } = lossCollector();
  const leftOut: Record<string, number> = {};
  const leaveOut = (reason: string): void => {
    leftOut[reason] = (leftOut[reason] ?? 0) + 1;
  };
  let written = { train: 0, test: 0 };
  await replaceWhole(out, async (target) => {
    await mkdir(target);
    written = await WRITERS[to]({ folder, splits, target, logBudget, onLoss, leaveOut });
  });
  return { to, out, written, leftOut, losses: losses() };
}

async function read({ files }: DatasetFolder, split: Split): Promise<Trajectory[]> {
  const trajectories: Trajectory[] = [];
  for await (const { trajectory } of readTracerTraj(files.jsonl[split])) trajectories.push(trajectory);
  return trajectories;
}

async function write(file: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
}

const counts = ({ train, test }: Readonly<Record<Split, readonly unknown[]>>): Record<Split, number> => ({
  train: train.length,
  test: test.length,
});

async function toParquet({ splits, target, onLoss }: Job, names: Readonly<Record<Split, string>>) {
  for (const split of SPLITS) await write(join(target, names[split]), tracerTrajParquet(splits[split], { onLoss }));
  return counts(splits);
}

/** A folder that can be pushed to the hub as it is. */
async function toHub(job: Job): Promise<Record<Split, number>> {
  const { folder, splits, target } = job;
  const written = await toParquet(job, HUB_FILES.parquet);
  for (const split of SPLITS) await writeTracerTraj(splits[split], join(target, HUB_FILES.jsonl[split]));
  await copyFile(folder.evidence, join(target, EVIDENCE_FILE));
  await write(join(target, "README.md"), withFiles(await readFile(folder.card, "utf8"), HUB_FILES, folder.card));
  return written;
}

async function toLessons(job: Job, recordOf: (lesson: Lesson) => unknown): Promise<Record<Split, number>> {
  const { splits, target, logBudget, leaveOut, onLoss } = job;
  const lessons = (split: Split): Lesson[] =>
    splits[split].flatMap((trajectory) => {
      const lesson = lessonOf(trajectory, logBudget);
      if (typeof lesson === "string") leaveOut(lesson);
      else if (lesson.isCut) onLoss({ field: "steps", count: 1, why: "the log was shortened to the log budget" });
      return typeof lesson === "string" ? [] : [lesson];
    });
  const made = { train: lessons("train"), test: lessons("test") };
  for (const split of SPLITS) await writeJsonLines(join(target, `${split}.jsonl`), made[split].map(recordOf));
  return counts(made);
}

async function toWhoAndWhen({ splits, target, leaveOut, onLoss }: Job): Promise<Record<Split, number>> {
  const usable = (split: Split): Trajectory[] =>
    splits[split].filter(({ labels }) => {
      if (labels.length === 0) leaveOut("no label");
      return labels.length > 0;
    });
  const kept = { train: usable("train"), test: usable("test") };
  for (const split of SPLITS) await writeWhoAndWhen(kept[split], join(target, split), { onLoss });
  return counts(kept);
}
