import { createReadStream, existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import { isError, RootstepError } from "../src/errors.ts";
import { readRunManifest } from "../src/runs/run-folder.ts";
import { type CheckpointContent, checkpointName, listCheckpoints, loadCheckpoint } from "./checkpoints.ts";
import {
  type Evaluation,
  evaluationSchema,
  type Metric,
  metricSchema,
  type SftMetric,
  sftMetricSchema,
  type Timing,
  timingSchema,
} from "./metrics.ts";
import {
  COURSE_FILE,
  courseEventSchema,
  lockOf,
  type ProcessView,
  stateOf,
  type TrainingState,
} from "./training-course.ts";

/** A checkpoint as the list shows it. */
export interface ListedCheckpoint {
  readonly name: string;
  readonly folder: string;
  readonly stepsDone: number;
  readonly reason: CheckpointContent["reason"] | undefined;
  readonly intact: boolean;
}

/** How far a training run is: what `train status` prints and the panel reads. */
export interface TrainingStatus {
  readonly kind: "grpo" | "sft";
  readonly startedAt: string;
  readonly steps: number;
  readonly stepsDone: number;
  readonly state: TrainingState;
  readonly metrics: readonly Metric[];
  readonly sftMetrics: readonly SftMetric[];
  readonly evaluations: readonly Evaluation[];
  readonly timings: readonly Timing[];
  readonly checkpoints: readonly ListedCheckpoint[];
}

const settingsSchema = z.looseObject({ steps: z.number() });
const manifestKinds: Readonly<Record<string, TrainingStatus["kind"]>> = { train: "grpo", "train-sft": "sft" };

/** What a training run's manifest says of it. @throws RootstepError FILE_MISSING where it is no run folder, RUN_MISMATCH, RUN_CORRUPT */
export function readTrainingManifest(folder: string): Pick<TrainingStatus, "kind" | "steps" | "startedAt"> {
  const { kind: found, settings, startedAt } = readRunManifest(folder);
  const kind = manifestKinds[found];
  if (kind !== undefined) return { kind, steps: settingsSchema.parse(settings).steps, startedAt };
  const what = `the folder holds a ${found} run, not a training run`;
  const hint = "Give the --out folder of train run or train sft.";
  throw new RootstepError("RUN_MISMATCH", { what, where: folder, hint });
}

/**
 * Reads a training folder without touching it, while it is written or after.
 * @throws RootstepError FILE_MISSING where it is no run folder, RUN_MISMATCH where it is one of another kind
 */
export async function readTrainingStatus(folder: string, view?: ProcessView): Promise<TrainingStatus> {
  const { kind, steps, startedAt } = readTrainingManifest(folder);
  const grpo = kind === "grpo";
  // Before the records: a run that has finished by then has written all of them.
  const course = await readRecords(join(folder, COURSE_FILE), courseEventSchema);
  const metricsFile = join(folder, "metrics.jsonl");
  const metrics = grpo ? await readRecords(metricsFile, metricSchema) : [];
  const sftMetrics = grpo ? [] : await readRecords(metricsFile, sftMetricSchema);
  const last = (metrics.at(-1) ?? sftMetrics.at(-1))?.step;
  const stepsDone = last === undefined ? 0 : last + 1;
  return {
    kind,
    startedAt,
    steps,
    stepsDone,
    state: stateOf(course, { stepsDone, steps, lock: lockOf(folder) }, view),
    metrics,
    sftMetrics,
    evaluations: await readRecords(join(folder, "evaluations.jsonl"), evaluationSchema),
    timings: await readRecords(join(folder, "timings.jsonl"), timingSchema),
    checkpoints: await listAll(join(folder, "checkpoints")),
  };
}

async function listAll(folder: string): Promise<ListedCheckpoint[]> {
  const listed: ListedCheckpoint[] = [];
  for (const stepsDone of await listCheckpoints(folder)) {
    const name = checkpointName(stepsDone);
    const at = { name, folder: join(folder, name), stepsDone };
    try {
      const { content } = await loadCheckpoint(at.folder);
      listed.push({ ...at, reason: content.reason, intact: true });
    } catch (error) {
      // One that is pruned while it is read is gone; a damaged one is shown.
      if (isError(error, "FILE_MISSING")) continue;
      if (!isError(error, "CHECKPOINT_CORRUPT") && !isError(error, "RUN_VERSION")) throw error;
      listed.push({ ...at, reason: undefined, intact: false });
    }
  }
  return listed;
}

/** The records of a file; a last line that is being written is left for the next look. @throws RootstepError RUN_CORRUPT */
async function readRecords<T>(path: string, schema: z.ZodType<T>): Promise<T[]> {
  if (!existsSync(path)) return [];
  const lines: string[] = [];
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
    lines.push(line);
  }
  return lines.flatMap((line, i) => {
    try {
      return [schema.parse(JSON.parse(line))];
    } catch (cause) {
      if (i === lines.length - 1) return [];
      throw new RootstepError("RUN_CORRUPT", { what: "the record cannot be read", where: `${path}:${i + 1}`, cause });
    }
  });
}
