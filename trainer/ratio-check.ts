import { RootstepError } from "../src/errors.ts";
import type { TrainingEngine } from "./engines/engine.ts";
import { type RatioStats, ratioStats } from "./metrics.ts";
import { type Logprobs_PGT, trainingGroups } from "./policy-update.ts";
import type { RolloutGroup } from "./rollouts.ts";

/** The sampler's own log-probabilities. */
export function samplerLogprobs(groups_P: readonly RolloutGroup[]): Logprobs_PGT {
  return groups_P.map(({ rollouts_G }) => rollouts_G.map(({ logprobs }) => logprobs));
}

/** The training engine's log-probabilities of the sampled tokens, at its present weights. */
export function engineLogprobs(engine: TrainingEngine, groups_P: readonly RolloutGroup[]): Promise<Logprobs_PGT> {
  return engine.forward(trainingGroups(groups_P, samplerLogprobs(groups_P), "token-mean"));
}

/**
 * Compares sampler and trainer at unchanged weights, where every ratio should be 1 but for rounding. A mean off by more
 * than the tolerance says that they hold different weights, cut the distribution differently or count tokens differently.
 *
 * @throws RootstepError RATIO_MISMATCH, ENGINE_FAILED, ENGINE_NAN
 */
export function compareAtUnchangedWeights(
  groups_P: readonly RolloutGroup[],
  recomputed_PGT: Logprobs_PGT,
  where: string,
): RatioStats | undefined {
  const ratios: number[] = [];
  groups_P.forEach(({ rollouts_G }, p) => {
    rollouts_G.forEach(({ logprobs }, g) => {
      const recomputed_T = recomputed_PGT[p]?.[g] ?? [];
      if (recomputed_T.length !== logprobs.length) {
        const what = `the engine returned ${recomputed_T.length} log-probabilities for ${logprobs.length} tokens`;
        throw new RootstepError("ENGINE_FAILED", { what, where });
      }
      recomputed_T.forEach((logprob, t) => {
        ratios.push(Math.exp(logprob - (logprobs[t] ?? Number.NaN)));
      });
    });
  });
  const stats = ratioStats(ratios);
  if (stats !== undefined && !Number.isFinite(stats.mean)) {
    throw new RootstepError("ENGINE_NAN", { what: "a recomputed log-probability is not finite", where });
  }
  return stats;
}

/** @throws RootstepError RATIO_MISMATCH */
export function requireMatchingRatio(stats: RatioStats, tolerance: number, where: string): void {
  if (Math.abs(stats.mean - 1) <= tolerance) return;
  const [mean, std, min, max] = [stats.mean, stats.std, stats.min, stats.max].map((value) => value.toPrecision(4));
  throw new RootstepError("RATIO_MISMATCH", {
    what: `at unchanged weights the mean ratio of trainer to sampler is ${mean} (std ${std}, from ${min} to ${max}), not 1 ± ${tolerance}`,
    where,
  });
}
