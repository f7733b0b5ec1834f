import { average, sampleStd } from "./advantages.ts";
import type { TrainConfig } from "./config.ts";
import type { Metric, RatioStats } from "./metrics.ts";
import type { UpdateSummary } from "./policy-update.ts";
import type { SampledBatch } from "./rollout-pipeline.ts";

/** The record of one step: what was sampled, what it earned, what the update did, and what looks wrong. */
export function stepMetric(step: {
  readonly config: TrainConfig;
  readonly s: number;
  readonly clip: number;
  readonly learningRate: number;
  readonly batch: SampledBatch;
  readonly update: UpdateSummary;
  /** Version of the policy that was updated. */
  readonly state: { readonly policyVersion: number };
  readonly samplerRatio: RatioStats | null;
}): Metric {
  const { batch, update } = step;
  const rollouts = batch.sampled.flatMap(({ rollouts_G }) => rollouts_G);
  const exact = batch.sampled.flatMap(({ example, rollouts_G }) =>
    rollouts_G.map(({ reward }) => (reward.prediction?.step === example.label.step ? 1 : 0)),
  );
  const logprobs = rollouts.flatMap((rollout) => rollout.logprobs);
  const lengths = rollouts.map(({ tokens }) => tokens.length);
  const totals = rollouts.map(({ reward }) => reward.total);
  const metric: Metric = {
    step: step.s,
    policyVersion: batch.policyVersion,
    staleness: { steps: step.s - batch.sampledAfter, versions: step.state.policyVersion - batch.policyVersion },
    clip: step.clip,
    learningRate: step.learningRate,
    reward: {
      mean: average(totals),
      std: sampleStd(totals),
      format: average(rollouts.map(({ reward }) => reward.format)),
      step: average(rollouts.map(({ reward }) => reward.step)),
      agent: average(rollouts.map(({ reward }) => reward.agent)),
      exactStep: average(exact),
    },
    groups: batch.sampled.length,
    deadGroups: batch.sampled.filter(({ advantages }) => advantages.dead).length,
    trainedGroups: batch.trained.length,
    truncated: rollouts.filter(({ finishReason }) => finishReason === "length").length,
    tokens: {
      prompt: batch.sampled.reduce((sum, { example }) => sum + example.prompt.length, 0),
      completion: logprobs.length,
    },
    lengths: { mean: average(lengths), max: Math.max(0, ...lengths) },
    entropy: logprobs.length === 0 ? 0 : -average(logprobs),
    ...update,
    samplerRatio: step.samplerRatio,
    warnings: [],
  };
  return { ...metric, warnings: warningsOf(metric, step.config, rollouts.length) };
}

function warningsOf(metric: Metric, config: TrainConfig, rollouts: number): string[] {
  const warnings: string[] = [];
  if (metric.entropy < config.entropyFloor) {
    warnings.push(
      `entropy ${metric.entropy.toPrecision(3)} is below ${config.entropyFloor}: the policy hardly explores`,
    );
  }
  if (metric.deadGroups === metric.groups) warnings.push("every group is dead: nothing to learn from in this step");
  if (metric.truncated * 2 > rollouts) warnings.push(`${metric.truncated} of ${rollouts} completions were cut short`);
  return warnings;
}
