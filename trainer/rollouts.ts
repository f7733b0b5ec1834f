import { RootstepError } from "../src/errors.ts";
import { type TracerReward, tracerReward } from "../src/reward/reward.ts";
import { type GroupAdvantages, groupAdvantages } from "./advantages.ts";
import type { TrainConfig } from "./config.ts";
import { drawExamples, type TrainingExample } from "./dataset.ts";
import type { Completion, RolloutSource, TracerCodec } from "./engines/engine.ts";

/** One sampled completion with what it earned. */
export interface Rollout extends Completion {
  readonly reward: TracerReward;
  /** What advantages are made of: the reward, less the penalty of a truncated completion where one is set. */
  readonly score: number;
  /** Left out of baseline, loss and denominators (truncated: mask). */
  readonly masked: boolean;
}

/** The G rollouts of one prompt. */
export interface RolloutGroup {
  readonly example: TrainingExample;
  readonly rollouts_G: readonly Rollout[];
  readonly advantages: GroupAdvantages;
}

export interface RolloutBatch {
  /** Everything sampled in this step. */
  readonly sampled: readonly RolloutGroup[];
  /** What is trained on, by the setting for dead groups. */
  readonly trained: readonly RolloutGroup[];
  /** Examples drawn since the run began. */
  readonly position: number;
}

export interface RolloutSetup {
  readonly config: TrainConfig;
  readonly source: RolloutSource;
  readonly codec: TracerCodec;
  readonly examples: readonly TrainingExample[];
  /** Optimiser steps behind the policy that is to sample: noted with every completion. */
  readonly policyVersion?: number;
  readonly signal?: AbortSignal;
}

/**
 * Samples and rewards the groups of step s; dead groups are left out, kept, or replaced by further prompts.
 * @throws RootstepError ENGINE_FAILED, ENGINE_NAN, INTERRUPTED; SYNC_MISMATCH where another version of the policy sampled
 */
export async function collectRollouts(setup: RolloutSetup, s: number, startPosition: number): Promise<RolloutBatch> {
  const { config } = setup;
  let position = startPosition;
  const sampled: RolloutGroup[] = [];
  const rounds = config.deadGroups === "resample" ? config.resampleRounds : 0;
  let missing = config.promptsPerStep;
  for (let round = 0; round <= rounds && missing > 0; round++) {
    const examples_P = drawExamples(setup.examples, { seed: config.seed, position, n: missing });
    position += examples_P.length;
    const groups_P = await sampleGroups(setup, examples_P, JSON.stringify([config.seed, "rollout", s, round]));
    sampled.push(...groups_P);
    missing = groups_P.filter((group) => group.advantages.dead).length;
  }
  const trained = config.deadGroups === "keep" ? sampled : sampled.filter((group) => !group.advantages.dead);
  return { sampled, trained, position };
}

async function sampleGroups(
  setup: RolloutSetup,
  examples_P: readonly TrainingExample[],
  seed: string,
): Promise<RolloutGroup[]> {
  const { config, source, policyVersion, signal } = setup;
  const asked = { prompts: examples_P.map(({ prompt }) => prompt), n: config.groupSize, temperature: 1, seed };
  const answer = await source.sample({ ...asked, ...(signal && { signal }) });
  const completions_PG = checkVersions(source.id, checkCompletions(source.id, answer, asked), policyVersion);
  return examples_P.map((example, p) => {
    const rollouts_G = (completions_PG[p] ?? []).map((completion) => judge(setup, example, completion));
    const advantages = groupAdvantages(
      rollouts_G.map((rollout) => rollout.score),
      { normalizeStd: config.normalizeStd, included_G: rollouts_G.map((rollout) => !rollout.masked) },
    );
    return { example, rollouts_G, advantages };
  });
}

function judge(setup: RolloutSetup, example: TrainingExample, completion: Completion): Rollout {
  const { config, codec } = setup;
  const reward = tracerReward(codec.decodeCompletion(completion.tokens), example.label, config);
  const truncated = completion.finishReason === "length";
  const penalty = truncated && config.truncated === "penalise" ? config.truncationPenalty : 0;
  return { ...completion, reward, score: reward.total - penalty, masked: truncated && config.truncated === "mask" };
}

/** Notes the version with every completion whose sampler does not; refuses one that names another. */
function checkVersions(
  sourceId: string,
  completions_PG: readonly (readonly Completion[])[],
  expected: number | undefined,
): readonly (readonly Completion[])[] {
  if (expected === undefined) return completions_PG;
  return completions_PG.map((completions_G) =>
    completions_G.map((completion) => {
      const { policyVersion = expected } = completion;
      if (policyVersion === expected) return { ...completion, policyVersion };
      const what = `version ${policyVersion} of the policy sampled where version ${expected} should have`;
      throw new RootstepError("SYNC_MISMATCH", { what, where: `sampler ${sourceId}` });
    }),
  );
}

/**
 * Refuses what a sampler must not return: too few groups or completions, a log-probability per token missing,
 * positive or not a number. @throws RootstepError ENGINE_FAILED, ENGINE_NAN
 */
export function checkCompletions(
  sourceId: string,
  completions_PG: readonly (readonly Completion[])[],
  asked: { readonly prompts: readonly unknown[]; readonly n: number; readonly seed: string },
): readonly (readonly Completion[])[] {
  const where = `sampler ${sourceId}, stream ${asked.seed}`;
  if (completions_PG.length !== asked.prompts.length) {
    const what = `the sampler returned ${completions_PG.length} groups for ${asked.prompts.length} prompts`;
    throw new RootstepError("ENGINE_FAILED", { what, where });
  }
  completions_PG.forEach((completions_G, p) => {
    if (completions_G.length !== asked.n) {
      const what = `the sampler returned ${completions_G.length} of ${asked.n} completions for prompt ${p}`;
      throw new RootstepError("ENGINE_FAILED", { what, where });
    }
    for (const { tokens, logprobs } of completions_G) {
      if (tokens.length !== logprobs.length) {
        const what = `the sampler returned ${logprobs.length} log-probabilities for ${tokens.length} tokens`;
        throw new RootstepError("ENGINE_FAILED", { what, where });
      }
      if (logprobs.some((logprob) => !Number.isFinite(logprob))) {
        const what = `the sampler returned a log-probability that is not finite for prompt ${p}`;
        throw new RootstepError("ENGINE_NAN", { what, where });
      }
      // Float32 rounding may lift a certain token's log-probability a little above 0.
      const positive = logprobs.find((logprob) => logprob > 1e-3);
      if (positive !== undefined) {
        const what = `the sampler returned ${positive} as a log-probability for prompt ${p}`;
        throw new RootstepError("ENGINE_FAILED", { what, where });
      }
    }
  });
  return completions_PG;
}
