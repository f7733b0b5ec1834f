/**
 * How the token losses of one update become one number.
 *
 * - `token-sum`: Σ over tokens; the denominator is 1 (what a Tinker engine sums by itself)
 * - `token-mean`: Σ over tokens / tokens of the update; long completions weigh more (DAPO, verl's default)
 * - `sequence-mean`: mean over completions of each one's token mean; every completion weighs the same (DeepSeekMath)
 */
export type Aggregation = "token-sum" | "token-mean" | "sequence-mean";

/** A completion as aggregation sees it. */
export interface CountedSequence {
  /** Number of tokens. */
  readonly length: number;
  /** Left out of the loss and out of every denominator. */
  readonly masked: boolean;
}

export interface TokenWeights {
  /** One weight per token of each sequence: what `TrainingGroup` carries to the engine, whose loss is a weighted sum. */
  readonly weights_NT: readonly (readonly number[])[];
  /** What was divided by: unmasked tokens and unmasked non-empty sequences. */
  readonly denominators: { readonly tokens: number; readonly sequences: number };
}

/** Weights for the sequences of one update; the denominators count all of them, so an update may be sent in pieces. */
export function tokenWeights(sequences_N: readonly CountedSequence[], aggregation: Aggregation): TokenWeights {
  const counted = sequences_N.filter((sequence) => !sequence.masked && sequence.length > 0);
  const denominators = {
    tokens: counted.reduce((sum, sequence) => sum + sequence.length, 0),
    sequences: counted.length,
  };
  const weightOf = (sequence: CountedSequence): number => {
    if (sequence.masked || sequence.length === 0) return 0;
    switch (aggregation) {
      case "token-sum":
        return 1;
      case "token-mean":
        return 1 / denominators.tokens;
      case "sequence-mean":
        return 1 / (denominators.sequences * sequence.length);
    }
  };
  return {
    weights_NT: sequences_N.map((sequence) => new Array<number>(sequence.length).fill(weightOf(sequence))),
    denominators,
  };
}
