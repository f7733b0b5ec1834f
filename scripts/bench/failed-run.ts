import type { ReplayExperiment } from "../../synth/search/strategy.ts";

/** A failed run whose decisive step is known, to try search strategies on. */
export interface FailedRun {
  readonly id: string;
  readonly truth: number;
  readonly length: number;
  /** A fresh experiment; each strategy gets its own, with the same outcomes for the same reruns. */
  open(): ReplayExperiment;
}

/** Where failed runs come from, for one cell of the bench. */
export interface Cell {
  readonly regime: "slip" | "systematic";
  /** Probability that a run meets an error elsewhere than at its hard step. */
  readonly noise: number;
  /** Steps of a run, about. */
  readonly length: number;
}

/** Chance of erring at the hard step each time it is reached, as in the simulator. */
export const ERROR_AGAIN = { slip: 0.3, systematic: 0.9 } as const;
