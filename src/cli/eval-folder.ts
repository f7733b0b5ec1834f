import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { RootstepError } from "../errors.ts";
import { compareRuns } from "../evaluation/compare-runs.ts";
import type { ComparedRun, Comparison } from "../evaluation/comparison.ts";
import { type EvalConfig, evalConfigSchema } from "../evaluation/config.ts";
import { type DataChoice, type DataVersion, type LoadedData, loadData } from "../evaluation/data.ts";
import { loadWhoAndWhen } from "../evaluation/datasets.ts";
import { floorsFor } from "../evaluation/floors.ts";
import { readPredictions } from "../evaluation/prediction-file.ts";
import { loadReferences } from "../evaluation/references.ts";
import { type Scores, scorePredictions } from "../evaluation/score.ts";
import { comparisonHtml } from "../report/comparison-html.ts";
import { evaluationTable, type FloorsByGroup } from "../report/evaluation-report.ts";
import { type RunManifest, readRunManifest, writeAtomically } from "../runs/run-folder.ts";

/** Written when a run ends: sha256 of predictions.jsonl, as `sha256sum` prints it. */
const SEAL = "predictions.sha256";

/** What a folder's manifest must hold to be scored; other settings may be of an older rootstep. */
const scoredSettingsSchema = evalConfigSchema
  .pick({ method: true, data: true, limit: true, seed: true, epochs: true, withReference: true, model: true })
  .strip();
export type ScoredSettings = Pick<
  EvalConfig,
  "method" | "data" | "limit" | "seed" | "epochs" | "withReference" | "model"
>;

export interface ScoreDocument {
  readonly set: string;
  /** Checksums of the data scored on. */
  readonly data: DataVersion;
  /** What a reader has to know before believing the numbers: other data, an edited file. Empty where all is well. */
  readonly marks: readonly string[];
  readonly scores: Scores;
  readonly floors: FloorsByGroup;
  readonly problems: LoadedData["problems"];
}

/** Loads each choice of data once, cut to the limit of a run. */
export function dataLoader(): (settings: Pick<EvalConfig, "data" | "limit">) => Promise<LoadedData> {
  const loaded = new Map<string, Promise<LoadedData>>();
  return async ({ data, limit }) => {
    const key = JSON.stringify(data);
    const set = loaded.get(key) ?? loadData(data);
    loaded.set(key, set);
    const whole = await set;
    if (limit === undefined) return whole;
    const items = whole.items.slice(0, limit);
    const ids = new Set(items.map(({ id }) => id));
    // A remark about a log that the run does not see is noise; records left out would have been counted and are said.
    const problems = whole.problems.filter(({ itemId }) => itemId === undefined || ids.has(itemId));
    return { ...whole, items, problems };
  };
}

/** The data's checksums as a manifest names them. */
export function inputsOf(version: DataVersion): Record<string, string> {
  return Object.fromEntries(Object.entries(version).map(([part, sum]) => [`data/${part}`, sum]));
}

/** The settings of an eval run folder. @throws RootstepError FILE_MISSING, RUN_… */
export function readEvalManifest(path: string): { readonly manifest: RunManifest; readonly settings: ScoredSettings } {
  const manifest = readRunManifest(path);
  const settings = scoredSettingsSchema.safeParse(manifest.kind === "eval" ? manifest.settings : undefined);
  if (settings.success) return { manifest, settings: settings.data };
  throw new RootstepError("RUN_MISMATCH", {
    what: `the folder holds a ${manifest.kind} run that cannot be scored`,
    where: path,
  });
}

/**
 * What is to be said about data that a run is scored on.
 * @throws RootstepError DATA_VERSION naming both checksums, unless forced
 */
export function dataMarks(manifest: RunManifest, version: DataVersion, path: string, force: boolean): string[] {
  const before = Object.entries(manifest.inputs).filter(([name]) => name.startsWith("data/"));
  if (before.length === 0) return ["the run's manifest has no checksum of its data: nothing says that it is the same"];
  const now = inputsOf(version);
  const names = [...new Set([...before.map(([name]) => name), ...Object.keys(now)])].sort();
  const differing = names
    .filter((name) => manifest.inputs[name] !== now[name])
    .map((name) => `${name} was ${manifest.inputs[name] ?? "absent"}, is ${now[name] ?? "absent"}`);
  if (differing.length === 0) return [];
  if (!force) {
    throw new RootstepError("DATA_VERSION", {
      what: `the run was made on other data: sha256 of ${differing.join("; ")}`,
      where: path,
    });
  }
  return [`data differs from the run's (--force): sha256 of ${differing.join("; ")}`];
}

/** Scores what lies in a folder and reads it only; `force` goes on past other data. */
export function scoreRun(
  path: string,
  { manifest, settings }: ReturnType<typeof readEvalManifest>,
  data: LoadedData,
  force: boolean,
): { readonly document: ScoreDocument; readonly run: ComparedRun } {
  const { predictions, sha256, torn } = readPredictions(join(path, "predictions.jsonl"));
  const marks = [
    ...dataMarks(manifest, data.version, path, force),
    ...sealMarks(path, sha256),
    ...(torn ? ["the last line of predictions.jsonl has no end: the run is under way or was killed"] : []),
  ];
  const scores = scorePredictions(data.items, predictions, {
    seed: settings.seed,
    epochs: settings.epochs,
    prices: settings.model?.prices,
  });
  const floors = Object.fromEntries(
    Object.keys(scores.byGroup).map((group) => [
      group,
      floorsFor(
        data.items.filter((item) => item.subset === group),
        { train: data.train },
      ),
    ]),
  );
  return {
    document: { set: data.name, data: data.version, marks, scores, floors, problems: data.problems },
    run: {
      name: basename(path),
      method: settings.method,
      model: settings.model?.model ?? null,
      withReference: settings.withReference,
      items: data.items,
      predictions,
      scores,
      train: data.train,
      marks,
    },
  };
}

function sealMarks(path: string, sha256: string): string[] {
  const file = join(path, SEAL);
  const sealed = existsSync(file) ? readFileSync(file, "utf8").split(" ")[0] : undefined;
  if (sealed === undefined || sealed === sha256) return [];
  return [`predictions.jsonl was changed after the run wrote it: sha256 was ${sealed}, is ${sha256}`];
}

/** Says which predictions the run itself wrote. */
export function sealPredictions(path: string): void {
  const { sha256 } = readPredictions(join(path, "predictions.jsonl"));
  writeAtomically(join(path, SEAL), `${sha256}  predictions.jsonl\n`);
}

/** Writes scores.json and report.html. @returns the table for the terminal */
export async function writeScores(path: string, scored: ReturnType<typeof scoreRun>, seed: number): Promise<string> {
  const { document, run } = scored;
  writeAtomically(join(path, "scores.json"), `${JSON.stringify(document, null, 2)}\n`);
  writeAtomically(
    join(path, "report.html"),
    comparisonHtml(await comparison([run], { seed }), `${run.method} on ${document.set}`),
  );
  const problems = document.problems.map(
    (problem) => `${problem.dropped ? "left out" : "note"}: ${problem.where}: ${problem.message}`,
  );
  return [
    evaluationTable(`${run.method} on ${document.set}`, document.scores, document.floors, document.marks),
    ...problems,
    `written to ${path}`,
  ].join("\n");
}

/** Runs beside each other, with the published results of their subsets. */
export async function comparison(
  runs: readonly ComparedRun[],
  settings: { readonly seed: number; readonly baseline?: string | undefined; readonly references?: boolean },
): Promise<Comparison> {
  const subsets = new Set(runs.flatMap((run) => run.items.map((item) => item.subset)));
  const all =
    settings.references === false
      ? []
      : [...(await loadReferences("who-and-when")), ...(await loadReferences("tracertraj"))];
  const references = all.filter((reference) => subsets.has(reference.subset));
  const benchmark = references.length === 0 ? [] : (await loadWhoAndWhen()).items;
  return compareRuns(runs, { seed: settings.seed, baseline: settings.baseline, references, benchmark });
}

/** The choice of data for data that lies elsewhere now. */
export function movedData(data: DataChoice, paths: readonly string[], isFolder: (path: string) => boolean): DataChoice {
  const { files: _, folder: __, ...rest } = data;
  const [only] = paths;
  return only !== undefined && paths.length === 1 && isFolder(only)
    ? { ...rest, folder: only }
    : { ...rest, files: [...paths] };
}
