import { RootstepError } from "../src/errors.ts";
import { stream } from "../src/random.ts";
import { average } from "./advantages.ts";
import { tokenWeights } from "./aggregation.ts";
import type { TrainConfig } from "./config.ts";
import type { ForwardBackwardResult, TrainingEngine, TrainingGroup } from "./engines/engine.ts";
import { type RatioStats, ratioStats } from "./metrics.ts";
import type { RolloutGroup } from "./rollouts.ts";

export type Logprobs_PGT = ForwardBackwardResult["logprobs"];

/** What the updates of one step did. */
export interface UpdateSummary {
  readonly updates: number;
  readonly loss: number | null;
  readonly gradNorm: number | null;
  readonly ratio: RatioStats | null;
  readonly clipFraction: number | null;
}

/** Groups as the engine takes them; weights count over these groups alone. */
export function trainingGroups(
  groups_P: readonly RolloutGroup[],
  oldLogprobs_PGT: Logprobs_PGT,
  aggregation: TrainConfig["aggregation"],
): TrainingGroup[] {
  const sequences_N = groups_P.flatMap(({ rollouts_G }) =>
    rollouts_G.map(({ tokens, masked }) => ({ length: tokens.length, masked })),
  );
  const { weights_NT } = tokenWeights(sequences_N, aggregation);
  let n = 0;
  return groups_P.map(({ example, rollouts_G, advantages }, p) => ({
    prompt: example.prompt,
    completions: rollouts_G.map(({ tokens }, g) => ({
      tokens,
      weights: weights_NT[n++] ?? [],
      advantage: advantages.advantages_G[g] ?? 0,
      oldLogprobs: oldLogprobs_PGT[p]?.[g] ?? [],
    })),
  }));
}

/**
 * Minibatch updates of step s with the clipped surrogate (§4.2): every epoch shuffles the groups, cuts them into
 * minibatches, and takes one optimiser step on each.
 *
 * @throws RootstepError ENGINE_NAN where loss, log-probabilities or gradient are not finite
 */
export async function updatePolicy(
  engine: TrainingEngine,
  config: TrainConfig,
  batch: { readonly groups_P: readonly RolloutGroup[]; readonly oldLogprobs_PGT: Logprobs_PGT },
  step: { readonly s: number; readonly clip: number; readonly learningRate: number },
): Promise<UpdateSummary> {
  const losses: number[] = [];
  const gradNorms: number[] = [];
  const ratios: number[] = [];
  let clipped = 0;
  for (let epoch = 0; epoch < config.epochsPerBatch; epoch++) {
    const order = stream(config.seed, "minibatch", step.s, epoch).shuffle([...batch.groups_P.keys()]);
    for (const part of chunks(order, config.minibatches)) {
      const groups = trainingGroups(
        part.flatMap((p) => batch.groups_P[p] ?? []),
        part.map((p) => batch.oldLogprobs_PGT[p] ?? []),
        config.aggregation,
      );
      const loss = { kind: "clipped-surrogate", clipLow: step.clip, clipHigh: step.clip } as const;
      const result = await engine.forwardBackward(groups, loss);
      requireFinite(result.loss, engine.id, step.s);
      for (const { ratio, advantage } of tokenRatios(groups, result.logprobs)) {
        requireFinite(ratio, engine.id, step.s);
        ratios.push(ratio);
        if ((advantage > 0 && ratio > 1 + step.clip) || (advantage < 0 && ratio < 1 - step.clip)) clipped++;
      }
      const { gradNorm } = await engine.optimStep({ ...config.optimizer, learningRate: step.learningRate });
      requireFinite(gradNorm, engine.id, step.s);
      losses.push(result.loss);
      gradNorms.push(gradNorm);
    }
  }
  if (losses.length === 0) return { updates: 0, loss: null, gradNorm: null, ratio: null, clipFraction: null };
  return {
    updates: losses.length,
    loss: average(losses),
    gradNorm: average(gradNorms),
    ratio: ratioStats(ratios) ?? null,
    clipFraction: ratios.length === 0 ? null : clipped / ratios.length,
  };
}

/** Ratio of new to old probability of every token that has weight. */
export function* tokenRatios(
  groups: readonly TrainingGroup[],
  logprobs_PGT: Logprobs_PGT,
): Generator<{ readonly ratio: number; readonly advantage: number }> {
  for (const [p, { completions }] of groups.entries()) {
    for (const [g, { tokens, weights, advantage, oldLogprobs }] of completions.entries()) {
      for (let t = 0; t < tokens.length; t++) {
        const logprob = logprobs_PGT[p]?.[g]?.[t];
        const old = oldLogprobs?.[t];
        if (logprob === undefined || old === undefined) {
          const what = `no log-probability for token ${t} of completion ${g} in group ${p}`;
          throw new RootstepError("ENGINE_FAILED", { what });
        }
        if (weights[t] !== 0) yield { ratio: Math.exp(logprob - old), advantage };
      }
    }
  }
}

/** At most n parts of nearly equal size, none empty, together all items in order. */
export function chunks<T>(items: readonly T[], n: number): T[][] {
  const parts = Math.min(n, items.length);
  return Array.from({ length: parts }, (_, i) =>
    items.slice(Math.floor((i * items.length) / parts), Math.floor(((i + 1) * items.length) / parts)),
  );
}

export function requireFinite(value: number, engineId: string, s: number): void {
  if (Number.isFinite(value)) return;
  throw new RootstepError("ENGINE_NAN", {
    what: "loss, log-probability or gradient norm is not finite",
    where: `engine ${engineId}, step ${s}`,
  });
}
