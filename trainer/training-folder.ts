import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { z } from "zod";
import { RootstepError } from "../src/errors.ts";
import {
  type CheckpointContent,
  loadLatestIntact,
  pruneCheckpoints,
  removeUnfinished,
  saveCheckpoint,
  setAside,
} from "./checkpoints.ts";
import type { EngineConfig } from "./engine-config.ts";
import type { TrainingEngine } from "./engines/engine.ts";
import { appendRecord, truncateRecords } from "./jsonl.ts";

/** The record files of a training folder. Only `timings.jsonl` holds wall-clock. */
export type RecordFile = "metrics.jsonl" | "evaluations.jsonl" | "timings.jsonl";

/** A training run on disk: checkpoints/, metrics.jsonl, evaluations.jsonl, timings.jsonl. */
export interface TrainingFolder<State> {
  /** The state to go on from; undefined for a fresh run. The engine already holds the checkpoint's state. */
  readonly resumed: State | undefined;
  /** Batches that the checkpoint holds, as JSON. */
  readonly rollouts: Uint8Array | undefined;
  /** Checkpoints that were passed over, set aside under `NAME.corrupt`. */
  readonly corrupt: readonly RootstepError[];
  append(file: RecordFile, record: unknown): Promise<void>;
  /**
   * Saves the engine and the loop's state.
   * @param protect steps whose checkpoints stay (the best one) @param rollouts batches sampled ahead, as JSON
   */
  checkpoint(
    state: State & { readonly step: number },
    reason: CheckpointContent["reason"],
    protect: readonly number[],
    rollouts?: Uint8Array,
  ): Promise<string>;
}

/**
 * Opens a training folder: finds the newest intact checkpoint, gives its state to the engine, and cuts the records
 * back to it, so that the run goes on as if it had never stopped.
 *
 * @throws RootstepError RUN_MISMATCH where settings, data or engine differ, CHECKPOINT_CORRUPT where none is intact
 */
export async function openTrainingFolder<State>(options: {
  readonly folder: string;
  readonly kind: CheckpointContent["kind"];
  readonly configHash: string;
  readonly dataHash: string;
  readonly engine: TrainingEngine;
  /** What opened the engine, so that the checkpoint says what opens its policy. */
  readonly engineConfig: EngineConfig;
  readonly stateSchema: z.ZodType<State>;
  readonly keepCheckpoints: number;
}): Promise<TrainingFolder<State>> {
  const { folder, engine, kind, configHash, dataHash } = options;
  const identity = { kind, configHash, dataHash, engine: engine.id };
  const checkpoints = join(folder, "checkpoints");
  await mkdir(checkpoints, { recursive: true });
  const { checkpoint, corrupt } = await loadLatestIntact(checkpoints);
  if (checkpoint !== undefined) {
    requireSameRun(checkpoint.content, identity, checkpoint.folder);
    await engine.importState(checkpoint.engineState);
  }
  for (const { folder: damaged } of corrupt) await setAside(damaged);
  await removeUnfinished(checkpoints);
  await cutRecords(folder, checkpoint?.content.stepsDone);
  return {
    resumed: checkpoint && parseLoop(options.stateSchema, checkpoint.content.loop, checkpoint.folder),
    corrupt: corrupt.map(({ error }) => error),
    append: (file, record) => appendRecord(join(folder, file), record),
    rollouts: checkpoint?.rollouts,
    checkpoint: async (state, reason, protect, rollouts) => {
      const policy = { engine: options.engineConfig, codec: engine.codec.id };
      const content = { ...identity, policy, stepsDone: state.step, reason, loop: state };
      const path = await saveCheckpoint(checkpoints, content, await engine.exportState(), rollouts);
      await pruneCheckpoints(checkpoints, options.keepCheckpoints, protect);
      return path;
    },
  };
}

/** Records of steps after the checkpoint are made again; without a checkpoint nothing was done yet. */
async function cutRecords(folder: string, stepsDone: number | undefined): Promise<void> {
  const before = (record: unknown): boolean => stepsDone !== undefined && numberOf(record, "step") < stepsDone;
  const upTo = (record: unknown): boolean => stepsDone !== undefined && numberOf(record, "stepsDone") <= stepsDone;
  const kept = await truncateRecords(join(folder, "metrics.jsonl"), before);
  await truncateRecords(join(folder, "timings.jsonl"), before);
  await truncateRecords(join(folder, "evaluations.jsonl"), upTo);
  if (kept < (stepsDone ?? 0)) {
    const what = `the checkpoint is that after ${stepsDone} steps, the file holds ${kept}`;
    throw new RootstepError("RUN_CORRUPT", { what, where: join(folder, "metrics.jsonl") });
  }
}

function numberOf(record: unknown, key: string): number {
  if (typeof record !== "object" || record === null) return Number.POSITIVE_INFINITY;
  const value = Object.entries(record).find(([name]) => name === key)?.[1];
  return typeof value === "number" ? value : Number.POSITIVE_INFINITY;
}

function requireSameRun(
  found: CheckpointContent,
  given: Pick<CheckpointContent, "kind" | "configHash" | "dataHash" | "engine">,
  where: string,
): void {
  const differences = [
    found.kind !== given.kind && `the kind of training (${found.kind}, now ${given.kind})`,
    found.engine !== given.engine && `the engine (${found.engine}, now ${given.engine})`,
    found.configHash !== given.configHash && "the settings",
    found.dataHash !== given.dataHash && "the training data",
  ].filter((difference) => difference !== false);
  if (differences.length === 0) return;
  throw new RootstepError("RUN_MISMATCH", { what: `the checkpoint differs in ${differences.join(", ")}`, where });
}

function parseLoop<State>(schema: z.ZodType<State>, loop: unknown, where: string): State {
  const parsed = schema.safeParse(loop);
  if (parsed.success) return parsed.data;
  const what = "the state of the loop has another shape: it was written by another version";
  throw new RootstepError("RUN_VERSION", { what, where, cause: parsed.error });
}
