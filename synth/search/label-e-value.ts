import type { StepEvidence } from "./strategy.ts";

/** A search as far as its label's e-value needs it. */
export interface LabelEvidence {
  readonly strategy: string;
  readonly step?: number;
  readonly evidence: readonly StepEvidence[];
}

/**
 * An e-value against "the correction of the step that this search named has no effect", 0 where it named none.
 *
 * The step is not fixed beforehand: it is the one of several examinations that found an effect. So each examination is
 * staked with a weight that is set before it begins, and the weights sum to at most 1: 1/T each where all T steps are
 * examined in turn, 1/(j(j+1)) for the j-th examination where a search chooses them (j from the evidence). A weighted
 * e-value of whichever examination is named then has expectation ≤ 1 if that step has no effect (Wang & Ramdas 2022, §2).
 *
 * @param length T, the run's steps
 */
export function labelEValue({ strategy, step, evidence }: LabelEvidence, length: number): number {
  const named = evidence.find((one) => one.step === step);
  if (named?.eValue === undefined) return 0;
  return named.eValue * stake(strategy, named.examination, length);
}

function stake(strategy: string, examination: number | undefined, length: number): number {
  return strategy === "exhaustive" || examination === undefined ? 1 / length : 1 / (examination * (examination + 1));
}

/**
 * The α at which an examination has to stop, so that labels can pass e-BH at level `fdr`: their first examination is staked
 * with ½, and where half of the runs get a label each needs an e-value of 2/fdr after that.
 */
export function stoppingAlpha(alpha: number, fdr: number | undefined): number {
  return fdr === undefined ? alpha : Math.min(alpha, fdr / 4);
}
