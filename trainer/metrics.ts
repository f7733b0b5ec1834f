import { z } from "zod";

const unit = z.number().min(0).max(1);

/** Mean, extremes and spread of per-token probability ratios. */
export const ratioSchema = z.strictObject({
  mean: z.number(),
  min: z.number(),
  max: z.number(),
  std: z.number(),
});
export type RatioStats = z.infer<typeof ratioSchema>;

/**
 * One step of GRPO. The record holds no wall-clock: a resumed run writes the same bytes as an undisturbed one.
 * null marks what a step without an update, or without a second numeric path, does not have.
 */
export const metricSchema = z.strictObject({
  step: z.number().int().nonnegative().describe("s, 0-based"),
  policyVersion: z.number().int().nonnegative().describe("optimiser steps behind the policy that sampled"),
  staleness: z
    .strictObject({
      steps: z.number().int().nonnegative().describe("steps; at most the setting overlap.staleness"),
      versions: z.number().int().nonnegative().describe("optimiser steps"),
    })
    .default({ steps: 0, versions: 0 })
    .describe("how far the policy that sampled is behind the one that was updated; 0 without overlap"),
  clip: z.number().positive().describe("B_s"),
  learningRate: z.number().positive(),
  reward: z
    .strictObject({
      mean: z.number(),
      std: z.number(),
      format: unit.describe("share of completions that pass the format gate"),
      step: unit.describe("mean r_step"),
      agent: unit.describe("mean r_agent"),
      exactStep: unit.describe("share of completions that name the labelled step"),
    })
    .describe("over every completion sampled in this step"),
  groups: z.number().int().nonnegative().describe("groups sampled, further ones of resampling included"),
  deadGroups: z.number().int().nonnegative().describe("groups whose rewards are all equal"),
  trainedGroups: z.number().int().nonnegative(),
  truncated: z.number().int().nonnegative().describe("completions cut at the length limit"),
  tokens: z.strictObject({
    prompt: z.number().int().nonnegative(),
    completion: z.number().int().nonnegative(),
  }),
  lengths: z
    .strictObject({ mean: z.number().nonnegative(), max: z.number().int().nonnegative() })
    .nullable()
    .default(null)
    .describe("tokens of a completion; null in records of an older rootstep"),
  entropy: z.number().describe("estimate in nats per token: mean −log-probability of the sampled tokens"),
  updates: z.number().int().nonnegative().describe("optimiser steps taken"),
  loss: z.number().nullable().describe("mean over the updates"),
  gradNorm: z.number().nullable().describe("mean over the updates, before clipping"),
  ratio: ratioSchema.nullable().describe("policy at each update over the sampling policy, per trained token"),
  clipFraction: unit.nullable().describe("trained tokens whose gradient the clip stops"),
  samplerRatio: ratioSchema
    .nullable()
    .describe("engine over sampler at unchanged weights, where old log-probabilities are recomputed"),
  warnings: z.array(z.string()),
});
export type Metric = z.infer<typeof metricSchema>;

/** Greedy answers on the held-out split after so many steps. */
export const evaluationSchema = z.strictObject({
  stepsDone: z.number().int().nonnegative(),
  n: z.number().int().positive(),
  stepAccuracy: unit,
  agentAccuracy: unit,
  format: unit,
  meanReward: z.number(),
});
export type Evaluation = z.infer<typeof evaluationSchema>;

/** One step of a cross-entropy warm start. */
export const sftMetricSchema = z.strictObject({
  step: z.number().int().nonnegative(),
  loss: z.number().describe("weighted loss the engine minimised"),
  tokenLoss: z.number().describe("mean −log-probability per target token, in nats"),
  learningRate: z.number().positive(),
  gradNorm: z.number(),
  targetTokens: z.number().int().nonnegative(),
});
export type SftMetric = z.infer<typeof sftMetricSchema>;

/**
 * Where a step's time went, in milliseconds; kept apart from the metrics. Sampling counts as far as the loop waited for it: with
 * overlap the rest of it ran beside the updates.
 */
export const timingSchema = z.strictObject({
  step: z.number().int().nonnegative(),
  sampleMs: z.number(),
  updateMs: z.number(),
  totalMs: z.number(),
});
export type Timing = z.infer<typeof timingSchema>;

/** Statistics of a list of ratios; undefined for an empty one. */
export function ratioStats(ratios: readonly number[]): RatioStats | undefined {
  const n = ratios.length;
  if (n === 0) return undefined;
  let sum = 0;
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (const ratio of ratios) {
    sum += ratio;
    min = Math.min(min, ratio);
    max = Math.max(max, ratio);
  }
  const mean = sum / n;
  const variance = ratios.reduce((total, ratio) => total + (ratio - mean) ** 2, 0) / n;
  return { mean, min, max, std: Math.sqrt(variance) };
}
