import type { Loss, TrainingGroup } from "../engine.ts";
import type { TargetLogprobs, TinkerDatum } from "./encoding.ts";
import type { TinkerProfile } from "./profiles.ts";

/** One completion of a group on its way to the engine and back. */
export interface Sequence {
  readonly p: number;
  readonly g: number;
  /** Targets before the completion's first token. */
  readonly offset: number;
  readonly input: readonly number[];
  readonly targets: readonly number[];
  /** Per target; 0 on the prompt unless it is trained on. */
  readonly weights: readonly number[];
  readonly advantage: number;
  /** Per target, 0 on the prompt; undefined where the group carries none. */
  readonly oldLogprobs: readonly number[] | undefined;
}

/** The completions of all groups, each with its prompt before it: inputs are all tokens but the last, targets all but the first. */
export function sequencesOf(groups: readonly TrainingGroup[]): Sequence[] {
  return groups.flatMap(({ prompt, completions, promptWeight }, p) =>
    completions.map(({ tokens, weights, advantage, oldLogprobs }, g) => {
      const full = [...prompt, ...tokens];
      const offset = prompt.length - 1;
      // The loss on the prompt counts once for the group.
      const onPrompt = new Array<number>(offset).fill(g === 0 ? (promptWeight ?? 0) : 0);
      return {
        p,
        g,
        offset,
        input: full.slice(0, -1),
        targets: full.slice(1),
        weights: [...onPrompt, ...weights],
        advantage,
        oldLogprobs: oldLogprobs && [...new Array<number>(offset).fill(0), ...oldLogprobs],
      };
    }),
  );
}

/** Sum of a sequence's weights. */
export function weightOf({ weights }: Pick<Sequence, "weights">): number {
  return weights.reduce((sum, weight) => sum + weight, 0);
}

/** What a training request is made of, so that the server's reduction gives −Σ weight · objective. */
export interface LossRequest {
  readonly lossFn: "ppo" | "importance_sampling" | "cross_entropy";
  readonly lossFnConfig: Readonly<Record<string, number>>;
  readonly data: readonly TinkerDatum[];
}

/**
 * The request for a loss.
 *
 * `token-sum` servers add up what they are given: weights are folded into the advantages (they are ≥ 0, so min and clip
 * are untouched). `sequence-mean` servers divide by the weights of a sequence and by the number of sequences since the
 * last optimiser step: advantages are multiplied by both. Their cross-entropy knows no advantages; its gradient is that
 * of importance sampling at ratio 1, for which the present log-probabilities are needed.
 *
 * @param sequences of which each has weight @param total sequences until the next optimiser step
 * @param present log-probabilities of the targets now; needed for cross-entropy on `sequence-mean` servers
 */
export function lossRequest(
  sequences: readonly Sequence[],
  loss: Loss,
  reduction: TinkerProfile["reduction"],
  { total, present }: { readonly total: number; readonly present?: TargetLogprobs },
): LossRequest {
  const clipped = loss.kind === "clipped-surrogate";
  // The bounds are those of the ratio itself.
  const lossFnConfig = clipped ? { clip_low_threshold: 1 - loss.clipLow, clip_high_threshold: 1 + loss.clipHigh } : {};
  if (reduction === "token-sum") {
    if (!clipped) return { lossFn: "cross_entropy", lossFnConfig, data: sequences.map(bare) };
    const data = sequences.map((sequence) => ({
      ...bare(sequence),
      weights: sequence.weights.map((weight) => (weight === 0 ? 0 : 1)),
      advantages: sequence.weights.map((weight) => weight * sequence.advantage),
      logprobs: sequence.oldLogprobs ?? [],
    }));
    return { lossFn: "ppo", lossFnConfig, data };
  }
  const data = sequences.map((sequence, i) => {
    const scale = weightOf(sequence) * total * (clipped ? sequence.advantage : 1);
    return {
      ...bare(sequence),
      advantages: sequence.weights.map(() => scale),
      logprobs: (clipped ? sequence.oldLogprobs : present?.[i]) ?? [],
    };
  });
  return { lossFn: clipped ? "ppo" : "importance_sampling", lossFnConfig, data };
}

/** The sequence without what only policy losses take. */
export function bare({ input, targets, weights }: Sequence): TinkerDatum {
  return { input, targets, weights };
}

/** −Σ weight · objective at those log-probabilities, from the definition (§4.2). */
export function lossValue(sequences: readonly Sequence[], logprobs: TargetLogprobs, loss: Loss): number {
  let total = 0;
  for (const [n, sequence] of sequences.entries()) {
    for (const [t, weight] of sequence.weights.entries()) {
      if (weight !== 0) total -= weight * objective(sequence, t, logprobs[n]?.[t] ?? Number.NaN, loss);
    }
  }
  return total;
}

function objective({ advantage, oldLogprobs }: Sequence, t: number, logprob: number, loss: Loss): number {
  if (loss.kind === "cross-entropy") return logprob;
  const ratio = Math.exp(logprob - (oldLogprobs?.[t] ?? Number.NaN));
  const clipped = Math.min(Math.max(ratio, 1 - loss.clipLow), 1 + loss.clipHigh);
  return Math.min(ratio * advantage, clipped * advantage);
}
