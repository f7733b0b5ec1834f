import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join, relative, sep } from "node:path";
import { z } from "zod";
import { sha256 } from "../checksum.ts";
import { RootstepError } from "../errors.ts";
import { agentRxFiles } from "../formats/agentrx/read.ts";
import { onFile } from "../formats/files.ts";
import { detectFormat } from "../formats/registry.ts";
import { whoAndWhenFiles } from "../formats/who-and-when/read.ts";
import { WHO_AND_WHEN_SUBSETS } from "../formats/who-and-when/subsets.ts";
import { shippedPath } from "../package-root.ts";
import {
  type EvaluationItem,
  type EvaluationSet,
  loadTrajectoryFiles,
  loadWhoAndWhen,
  WHO_AND_WHEN_CHOICES,
} from "./datasets.ts";

/** Which labelled runs to evaluate on. */
export const dataChoiceSchema = z.strictObject({
  files: z.array(z.string()).optional().describe("TracerTraj or other trajectory files; default: Who&When"),
  folder: z
    .string()
    .optional()
    .describe("a folder: Who&When or like it, a TracerTraj dataset, an AgentRx release; default: Who&When as it ships"),
  subset: z.enum(WHO_AND_WHEN_CHOICES).default("all").describe("subset of Who&When"),
  split: z.enum(["train", "test", "all"]).optional().describe("of a TracerTraj dataset folder; default: test"),
  clean: z.boolean().default(false).describe("only labels that name the speaker of their step, no duplicate history"),
  indexBase: z
    .union([z.literal(0), z.literal(1)])
    .optional()
    .describe("what a Who&When-like source counts its first step as; the release counts from 0"),
  skipBad: z.boolean().optional().describe("leave out records that cannot be read, and report them"),
});
export type DataChoice = z.infer<typeof dataChoiceSchema>;

/** sha256 of the data by part; the same data has the same sums wherever it lies. Goes into a run's manifest. */
export type DataVersion = Readonly<Record<string, string>>;

export interface LoadedData extends EvaluationSet {
  readonly version: DataVersion;
  /** Labelled runs that are not evaluated on, to learn layout floors from: the train split of a TracerTraj dataset. */
  readonly train?: readonly EvaluationItem[];
}

/**
 * The runs of a choice, with the checksums of the files they were read from. Folders are recognised by what lies in
 * them; how steps are counted is never guessed: the format or `indexBase` says it.
 *
 * @throws RootstepError FILE_MISSING, DATA_UNKNOWN_FORMAT, CONFIG_INVALID, DATA_… (unless `skipBad`)
 */
export async function loadData(choice: DataChoice): Promise<LoadedData> {
  const { clean, skipBad, indexBase } = choice;
  const settings = { clean, skipBad, indexBase };
  if (choice.files !== undefined) {
    refuseSplit(choice, choice.files.join(", "));
    const set = await loadTrajectoryFiles(choice.files, settings);
    return { ...set, version: await versionOfFiles(choice.files) };
  }
  const folder = choice.folder ?? shippedPath("data", "who_and_when");
  const splits = choice.folder === undefined ? [] : await splitsIn(folder);
  if (splits.length > 0) return loadDataset(folder, splits, choice);
  refuseSplit(choice, folder);
  if (choice.folder !== undefined && (await detectFormat(folder)).id === "agentrx") {
    const set = await loadTrajectoryFiles([folder], settings);
    return { ...set, version: { data: await checksum(folder, await agentRxFiles(folder)) } };
  }
  const set = await loadWhoAndWhen({ ...settings, subset: choice.subset, dir: folder });
  return { ...set, version: await versionOfWhoAndWhen(folder, choice.subset) };
}

function refuseSplit({ split }: DataChoice, where: string): void {
  if (split === undefined) return;
  throw new RootstepError("CONFIG_INVALID", { what: `setting data.split is for TracerTraj dataset folders`, where });
}

const SPLITS = ["train", "test"] as const;
type SplitFile = { readonly split: (typeof SPLITS)[number]; readonly file: string };

/** The split files of a TracerTraj dataset folder, as `synth run` writes it; none in other folders. */
async function splitsIn(folder: string): Promise<SplitFile[]> {
  if (!(await onFile(folder, () => stat(folder))).isDirectory()) return [];
  const names = await onFile(folder, () => readdir(folder));
  return SPLITS.flatMap((split) =>
    [`${split}.jsonl`, `${split}.jsonl.gz`]
      .filter((name) => names.includes(name))
      .map((name) => ({ split, file: join(folder, name) })),
  );
}

async function loadDataset(folder: string, splits: readonly SplitFile[], choice: DataChoice): Promise<LoadedData> {
  const split = choice.split ?? "test";
  const chosen = splits.filter((part) => split === "all" || part.split === split);
  if (chosen.length === 0) {
    throw new RootstepError("FILE_MISSING", { what: `the dataset has no ${split} split`, where: folder });
  }
  const { clean, skipBad, indexBase } = choice;
  const set = await loadTrajectoryFiles(
    chosen.map(({ file }) => file),
    { clean, skipBad, indexBase },
  );
  const trainFiles = split === "test" ? splits.filter((part) => part.split === "train").map(({ file }) => file) : [];
  const train = trainFiles.length === 0 ? undefined : await loadTrajectoryFiles(trainFiles, { skipBad });
  return {
    ...set,
    name: `TracerTraj ${basename(folder)} ${split}${clean ? " (clean)" : ""}`,
    version: await versionOfFiles([...chosen.map(({ file }) => file), ...trainFiles]),
    ...(train !== undefined && { train: train.items }),
  };
}

async function versionOfFiles(files: readonly string[]): Promise<DataVersion> {
  const sums = await Promise.all(files.map(async (file) => [basename(file), await checksumOfPath(file)] as const));
  // Two files of one name: their sums stand together, in order.
  const version: Record<string, string> = {};
  for (const [name, sum] of sums) version[name] = version[name] === undefined ? sum : `${version[name]}+${sum}`;
  return version;
}

/** The two halves apart, as the shipped manifest has them, so that a run on one half and a run on both can be matched. */
async function versionOfWhoAndWhen(folder: string, subset: DataChoice["subset"]): Promise<DataVersion> {
  const files = await whoAndWhenFiles(folder);
  const version: Record<string, string> = {};
  for (const half of WHO_AND_WHEN_SUBSETS) {
    const inside = files.filter((file) => relative(folder, file).startsWith(`${half.folder}${sep}`));
    if (inside.length > 0 && (subset === "all" || subset === half.slug)) {
      version[half.folder] = await checksum(folder, inside);
    }
  }
  return Object.keys(version).length > 0 ? version : { data: await checksum(folder, files) };
}

async function checksumOfPath(path: string): Promise<string> {
  const found = await onFile(path, () => stat(path));
  return found.isDirectory()
    ? checksum(path, await whoAndWhenFiles(path))
    : sha256(await onFile(path, () => readFile(path)));
}

/** One sum over the lines `sha256  path`, sorted by path: what scripts/data/checksums.mjs writes for a part of a set. */
async function checksum(folder: string, files: readonly string[]): Promise<string> {
  const named = files.map((file) => ({ file, name: relative(folder, file).split(sep).join("/") || basename(file) }));
  named.sort((a, b) => (a.name < b.name ? -1 : 1));
  const lines: string[] = [];
  for (const { file, name } of named) lines.push(`${sha256(await onFile(file, () => readFile(file)))}  ${name}\n`);
  return sha256(lines.join(""));
}
