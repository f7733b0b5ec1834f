import { RootstepError } from "../src/errors.ts";
import { configHash, type TrainConfig } from "./config.ts";
import { dataHash, type TrainingExample } from "./dataset.ts";
import type { EngineState, RolloutSource, TrainingEngine } from "./engines/engine.ts";
import { guardEngine, guardSource } from "./engines/guarded.ts";
import { type CheckpointReason, grpo, type LoopState, loopStateSchema } from "./loop.ts";
import type { Evaluation, Metric, RatioStats } from "./metrics.ts";
import { openTrainingFolder } from "./training-folder.ts";

/** What a run reports besides its records: for progress lines and warnings. */
export type TrainingEvent =
  | { readonly kind: "resumed"; readonly stepsDone: number }
  | { readonly kind: "corrupt-checkpoint"; readonly error: RootstepError }
  | { readonly kind: "ratio-check"; readonly stats: RatioStats }
  | { readonly kind: "checkpoint"; readonly path: string; readonly reason: CheckpointReason };

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
    stateSchema: loopStateSchema,
    keepCheckpoints: config.keepCheckpoints,
  });
  for (const error of folder.corrupt) onEvent?.({ kind: "corrupt-checkpoint", error });
  if (folder.resumed !== undefined) onEvent?.({ kind: "resumed", stepsDone: folder.resumed.step });
  else if (options.start !== undefined) await engine.importState({ weights: options.start.weights });
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
  return await grpo(setup, folder.resumed, {
    onMetric: async (metric, timing) => {
      await folder.append("metrics.jsonl", metric);
      await folder.append("timings.jsonl", timing);
      options.onMetric?.(metric);
    },
    onEvaluation: async (evaluation) => {
      await folder.append("evaluations.jsonl", evaluation);
      options.onEvaluation?.(evaluation);
    },
    onCheckpoint: async (state, reason) => {
      const protect = state.best === null ? [] : [state.best.stepsDone];
      const path = await folder.checkpoint(state, reason, protect);
      onEvent?.({ kind: "checkpoint", path, reason });
    },
    onRatioCheck: (stats) => onEvent?.({ kind: "ratio-check", stats }),
  });
}

function requireRunnable({ config, engine, examples }: TrainRunOptions): void {
  if (examples.length === 0) {
    throw new RootstepError("DATA_INVALID", {
      what: "there is no training example",
      hint: "Label failed runs first (`rootstep synth run`), or choose other labels with the key labels.",
    });
  }
  if (config.groupSize > engine.limits.groupSize) {
    const what = `groupSize ${config.groupSize} is above the ${engine.limits.groupSize} of engine ${engine.id}`;
    throw new RootstepError("CONFIG_INVALID", { what, where: "groupSize" });
  }
}
