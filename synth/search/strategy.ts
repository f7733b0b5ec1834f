import type { Label } from "../../src/trajectory/schema.ts";

/**
 * One failed run under experiment. Arms at step t: *treated* reruns with the corrected action at t, *control* with the
 * recorded one; both replay the steps before t and are live after it.
 */
export interface ReplayExperiment {
  /** Steps of the failed run. */
  readonly length: number;
  /** True if the analyzer has a usable correction for that step. */
  hasCorrection(step: number): Promise<boolean>;
  /**
   * Ω of one rerun. The same (arm, step, replicate) always gives the same outcome.
   * @throws RootstepError REPLAY_DIVERGED, BUDGET_REACHED, INTERRUPTED
   */
  rerun(arm: "treated" | "control", step: number, replicate: number): Promise<boolean>;
  /** Model calls made live so far, the analyzer's among them. */
  readonly liveCalls: number;
}

/** What the reruns at one step said. */
export interface StepEvidence {
  readonly step: number;
  readonly treated: { readonly runs: number; readonly successes: number };
  readonly control: { readonly runs: number; readonly successes: number };
  readonly eValue?: number;
  /** 1 for the step that the search examined first, 2 for the next; absent where it goes by the order of the steps. */
  readonly examination?: number;
  readonly decision: "effect" | "no effect" | "undecided" | "no correction" | "flip" | "no flip";
}

export interface SearchResult {
  readonly verdict: NonNullable<Label["verdict"]>;
  /** The step the strategy names as t*, if any. */
  readonly step?: number;
  readonly evidence: readonly StepEvidence[];
}

export interface SearchSettings {
  /** Bound on the probability of claiming an effect that is not there, per step. */
  readonly alpha: number;
  /** Blocks (one treated and one control rerun each) after which a step stays undecided. */
  readonly maxBlocks: number;
  /** Smallest effect worth finding, as a difference of success probabilities. */
  readonly minEffect: number;
  /** A step is given up when the posterior probability of such an effect falls below this. */
  readonly futility: number;
  /** Live calls after which a run stays undecided; a rerun or block once begun is finished. Default: the strategy's. */
  readonly maxLiveCalls?: number;
}

/** A way to find the decisive step. Resumable because reruns are named, not drawn in order. */
export interface SearchStrategy {
  readonly id: string;
  readonly title: string;
  /**
   * @param prior what another attribution method believes: one weight ≥ 0 per step, of any sum above 0. It may spare
   *   reruns; strategies that have no use for it ignore it
   * @throws RootstepError those of the experiment; CONFIG_INVALID for a prior that does not fit the run
   */
  search(experiment: ReplayExperiment, settings: SearchSettings, prior?: readonly number[]): Promise<SearchResult>;
}
