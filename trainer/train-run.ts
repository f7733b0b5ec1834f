import { RootstepError } from "../src/errors.ts";
import { configHash, type TrainConfig } from "./config.ts";
import { dataHash, type TrainingExample } from "./dataset.ts";
import type { EngineState, RolloutSource, TrainingEngine } from "./engines/engine.ts";
import { guardEngine, guardSource } from "./engines/guarded.ts";
import { type CheckpointReason, grpo, type LoopState, loopStateSchema } from "./loop.ts";
import type { Evaluation, Metric, RatioStats } from "./metrics.ts";
import { type HeldBatch, heldBatchesSchema } from "./rollout-pipeline.ts";
import { type Course, openCourse } from "./training-course.ts";
import { openTrainingFolder } from "./training-folder.ts";

/** What a run reports besides its records: for progress lines and warnings. */
export type TrainingEvent =
  | { readonly kind: "resumed"; readonly stepsDone: number }
  | { readonly kind: "corrupt-checkpoint"; readonly error: RootstepError }
  | { readonly kind: "ratio-check"; readonly stats: RatioStats }
  /** A resumed run with overlap begins with a batch that no weights in reach sampled: there is nothing to compare it with. */
  | { readonly kind: "ratio-check-skipped" }
  | {
      readonly kind: "checkpoint";
      readonly path: string;
      readonly stepsDone: number;
      readonly reason: CheckpointReason;
    };

export interface TrainRunOptions {
  readonly config: TrainConfig;
  readonly engine: TrainingEngine;
  /** What samples; the engine itself by default. */
  readonly rollouts?: RolloutSource;
  /** Brings the sampler to a version of the policy. */
  readonly sync?: (policyVersion: number) => Promise<void>;
  readonly examples: readonly TrainingExample[];
  readonly heldOut: readonly TrainingExample[];
  /** Weights that a fresh run begins with: a warm start. The engine's own by default. */
  readonly start?: EngineState;
  /** Holds checkpoints/ and the records. The caller sees to it that one process writes there. */
  readonly folder: string;
  /** Finishes the step in progress, saves and ends with INTERRUPTED. */
  readonly signal?: AbortSignal;
  readonly onMetric?: (metric: Metric) => void;
  readonly onEvaluation?: (evaluation: Evaluation) => void;
  readonly onEvent?: (event: TrainingEvent) => void;
  readonly now?: () => number;
  /** Wall-clock of the run's journal of events. */
  readonly clock?: () => Date;
}

/**
 * Trains in a folder, from its newest checkpoint if it has one. After any number of interruptions and crashes the
 * final metrics, evaluations and checkpoints are byte for byte those of an undisturbed run, if the engine repeats.
 *
 * @throws RootstepError CONFIG_INVALID, RUN_MISMATCH, CHECKPOINT_CORRUPT, and those of the loop
 */
export async function trainRun(options: TrainRunOptions): Promise<LoopState> {
  const { config, examples, heldOut, onEvent } = options;
  const engine = guardEngine(options.engine);
  requireRunnable(options);
  const folder = await openTrainingFolder({
    folder: options.folder,
    kind: "grpo",
    configHash: configHash(config),
    dataHash: dataHash(examples, heldOut),
    engine,
    engineConfig: config.engine,
    stateSchema: loopStateSchema,
    keepCheckpoints: config.keepCheckpoints,
  });
  const course = openCourse(options.folder, options.clock);
  const noted = async (event: TrainingEvent): Promise<void> => {
    onEvent?.(event);
    const inCourse = courseOf(event);
    if (inCourse !== undefined) await course.note(inCourse);
  };
  const stepsDone = folder.resumed?.step ?? 0;
  return await course.follow(stepsDone, async () => {
    for (const error of folder.corrupt) await noted({ kind: "corrupt-checkpoint", error });
    if (folder.resumed !== undefined) await noted({ kind: "resumed", stepsDone });
    else if (options.start !== undefined) await engine.importState({ weights: options.start.weights });
    if (folder.rollouts !== undefined) await noted({ kind: "ratio-check-skipped" });
    const setup = {
      config,
      engine,
      rollouts: options.rollouts === undefined ? engine : guardSource(options.rollouts),
      examples,
      heldOut,
      now: options.now ?? (() => performance.now()),
      ...(options.sync && { sync: options.sync }),
      ...(options.signal && { signal: options.signal }),
    };
    const held = readHeld(folder.rollouts, options.folder);
    return await grpo(setup, folder.resumed && { state: folder.resumed, held }, {
      onMetric: async (metric, timing) => {
        await folder.append("metrics.jsonl", metric);
        await folder.append("timings.jsonl", timing);
        options.onMetric?.(metric);
      },
      onEvaluation: async (evaluation) => {
        await folder.append("evaluations.jsonl", evaluation);
        options.onEvaluation?.(evaluation);
      },
      onCheckpoint: async (state, reason, ahead) => {
        const protect = state.best === null ? [] : [state.best.stepsDone];
        const rollouts = ahead.length === 0 ? undefined : Buffer.from(JSON.stringify(ahead));
        const path = await folder.checkpoint(state, reason, protect, rollouts);
        await noted({ kind: "checkpoint", path, stepsDone: state.step, reason });
      },
      onRatioCheck: (stats) => noted({ kind: "ratio-check", stats }),
    });
  });
}

/** What of an event the run's own journal keeps: a start is noted there with its process. */
function courseOf(event: TrainingEvent): Parameters<Course["note"]>[0] | undefined {
  switch (event.kind) {
    case "resumed":
      return undefined;
    case "corrupt-checkpoint":
      return { kind: event.kind, what: event.error.message };
    case "checkpoint":
      return { kind: event.kind, stepsDone: event.stepsDone, reason: event.reason };
    case "ratio-check":
    case "ratio-check-skipped":
      return event;
  }
}

/** @throws RootstepError CHECKPOINT_CORRUPT */
function readHeld(rollouts: Uint8Array | undefined, where: string): readonly HeldBatch[] {
  if (rollouts === undefined) return [];
  try {
    return heldBatchesSchema.parse(JSON.parse(Buffer.from(rollouts).toString("utf8")));
  } catch (cause) {
    throw new RootstepError("CHECKPOINT_CORRUPT", { what: "the batches sampled ahead cannot be read", where, cause });
  }
}

function requireRunnable({ config, engine, examples, rollouts }: TrainRunOptions): void {
  if (examples.length === 0) {
    throw new RootstepError("DATA_INVALID", {
      what: "there is no training example",
      hint: "Label failed runs first (`rootstep synth run`), or choose other labels with the key labels.",
    });
  }
  requireOverlap(config, engine, rollouts);
  if (config.groupSize > engine.limits.groupSize) {
    const what = `groupSize ${config.groupSize} is above the ${engine.limits.groupSize} of engine ${engine.id}`;
    throw new RootstepError("CONFIG_INVALID", { what, where: "groupSize" });
  }
}

/** @throws RootstepError CONFIG_INVALID where batches cannot be sampled while the engine updates, or old log-probabilities are gone */
function requireOverlap(config: TrainConfig, engine: TrainingEngine, rollouts: RolloutSource | undefined): void {
  if (config.overlap === undefined) return;
  if (rollouts === undefined && engine.frozenSampler === undefined) {
    throw new RootstepError("CONFIG_INVALID", {
      what: `engine ${engine.id} samples from the weights it trains alone: no batch can be sampled while it updates`,
      where: "overlap",
      hint: "Let vLLM servers sample (sampling.from: vllm), or leave overlap out.",
    });
  }
  if (config.oldLogprobs !== "engine") return;
  throw new RootstepError("CONFIG_INVALID", {
    what: "with overlap the engine no longer holds the policy that sampled, so it cannot compute old log-probabilities",
    where: "oldLogprobs",
    hint: "Set oldLogprobs to sampler or auto, or leave overlap out.",
  });
}
