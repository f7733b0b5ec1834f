import { z } from "zod";
import { RootstepError } from "../src/errors.ts";
import type { Label, Trajectory } from "../src/trajectory/schema.ts";
import { tokenWeights } from "./aggregation.ts";
import { learningRateAt } from "./clip-schedule.ts";
import { checkpointShape, configHash, exampleShape, learningRateShape, optimizerSchema } from "./config.ts";
import { dataHash, drawExamples, type TrainingExample } from "./dataset.ts";
import { engineSchema, serversSchema } from "./engine-config.ts";
import type { TrainingEngine, TrainingGroup } from "./engines/engine.ts";
import { guardEngine } from "./engines/guarded.ts";
import type { CheckpointReason } from "./loop.ts";
import type { SftMetric } from "./metrics.ts";
import { requireFinite } from "./policy-update.ts";
import { openCourse } from "./training-course.ts";
import { openTrainingFolder } from "./training-folder.ts";

/** Cross-entropy on labelled trajectories: a warm start for GRPO, or the control that more of it would give. */
export const sftConfigSchema = z.strictObject({
  steps: z.number().int().positive().describe("optimiser steps"),
  seed: z.number().int().default(0).describe("seed of the data order"),
  batchSize: z.number().int().positive().default(32).describe("examples per step"),
  learningRate: z.number().positive().default(1e-5).describe("learning rate"),
  ...learningRateShape,
  optimizer: optimizerSchema.prefault({}).describe("Adam"),
  promptLossWeight: z
    .number()
    .nonnegative()
    .default(0)
    .describe("weight of a language-model loss on the prompt, as a mean over its tokens"),
  engine: engineSchema,
  servers: serversSchema,
  ...checkpointShape,
  ...exampleShape,
});
export type SftConfig = z.infer<typeof sftConfigSchema>;

const sftStateSchema = z.strictObject({ step: z.number().int().nonnegative() });

/** The completion a labelled trajectory should get, end token included. */
export type TargetWriter = (trajectory: Trajectory, label: Label) => readonly number[];

/**
 * Trains by cross-entropy in a folder, resuming like `trainRun` does.
 *
 * @returns steps done
 * @throws RootstepError DATA_INVALID where a target is longer than the engine takes, ENGINE_NAN, INTERRUPTED after a checkpoint
 */
export async function trainSft(options: {
  readonly config: SftConfig;
  readonly engine: TrainingEngine;
  readonly examples: readonly TrainingExample[];
  readonly target: TargetWriter;
  readonly folder: string;
  readonly signal?: AbortSignal;
  readonly onMetric?: (metric: SftMetric) => void;
}): Promise<{ readonly step: number }> {
  const { config, examples, signal } = options;
  const engine = guardEngine(options.engine);
  if (examples.length === 0) throw new RootstepError("DATA_INVALID", { what: "there is no training example" });
  const folder = await openTrainingFolder({
    folder: options.folder,
    kind: "sft",
    configHash: configHash(config),
    dataHash: dataHash(examples, []),
    engine,
    engineConfig: config.engine,
    stateSchema: sftStateSchema,
    keepCheckpoints: config.keepCheckpoints,
  });
  const course = openCourse(options.folder);
  const stepsDone = folder.resumed?.step ?? 0;
  return await course.follow(stepsDone, async () => {
    let step = stepsDone;
    const checkpoint = async (reason: CheckpointReason): Promise<void> => {
      await folder.checkpoint({ step }, reason, []);
      await course.note({ kind: "checkpoint", stepsDone: step, reason });
    };
    if (folder.resumed === undefined) await checkpoint("start");
    while (step < config.steps) {
      const metric = await sftStep(engine, config, examples, options.target, step);
      await folder.append("metrics.jsonl", metric);
      options.onMetric?.(metric);
      step++;
      if (step === config.steps) await checkpoint("final");
      else if (step % config.checkpointEvery === 0) await checkpoint("scheduled");
      if (signal?.aborted === true && step < config.steps) {
        if (step % config.checkpointEvery !== 0) await checkpoint("interrupted");
        throw new RootstepError("INTERRUPTED", { what: `training stopped after step ${step}`, where: options.folder });
      }
    }
    return { step };
  });
}

/** One cross-entropy step on the next examples of the data order. */
export async function sftStep(
  engine: TrainingEngine,
  config: SftConfig,
  examples: readonly TrainingExample[],
  target: TargetWriter,
  s: number,
): Promise<SftMetric> {
  const { seed, batchSize: n } = config;
  const groups = sftGroups(drawExamples(examples, { seed, position: s * n, n }), target, engine, config);
  const learningRate = learningRateAt(s, config.steps, config);
  const { loss, logprobs } = await engine.forwardBackward(groups, { kind: "cross-entropy" });
  requireFinite(loss, engine.id, s);
  const { gradNorm } = await engine.optimStep({ ...config.optimizer, learningRate });
  requireFinite(gradNorm, engine.id, s);
  const logprobs_N = logprobs.flat(2);
  const tokenLoss = -logprobs_N.reduce((sum, logprob) => sum + logprob, 0) / logprobs_N.length;
  return { step: s, loss, tokenLoss, learningRate, gradNorm, targetTokens: logprobs_N.length };
}

/** One group of one completion per example, weighted to the mean over the batch's target tokens. */
function sftGroups(
  examples: readonly TrainingExample[],
  target: TargetWriter,
  engine: TrainingEngine,
  config: SftConfig,
): TrainingGroup[] {
  const targets = examples.map(({ trajectory, label }) => {
    const tokens = target(trajectory, label);
    if (tokens.length > 0 && tokens.length <= engine.limits.maxCompletion) return tokens;
    const what = `the target has ${tokens.length} tokens, the engine takes 1–${engine.limits.maxCompletion}`;
    throw new RootstepError("DATA_INVALID", { what, where: `trajectory ${trajectory.id}` });
  });
  const { weights_NT } = tokenWeights(
    targets.map(({ length }) => ({ length, masked: false })),
    "token-mean",
  );
  const promptTokens = examples.reduce((sum, { prompt }) => sum + prompt.length, 0);
  return examples.map(({ prompt }, i) => ({
    prompt,
    completions: [{ tokens: targets[i] ?? [], weights: weights_NT[i] ?? [], advantage: 1 }],
    ...(config.promptLossWeight > 0 && { promptWeight: config.promptLossWeight / promptTokens }),
  }));
}
