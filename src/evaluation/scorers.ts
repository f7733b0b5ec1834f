import { sameAgent } from "../trajectory/agent-name.ts";
import type { EvaluationItem } from "./datasets.ts";
import type { Prediction } from "./prediction.ts";

/** Labels at this step or later make a late failure: what went wrong lies far from where the task was set. */
export const LATE_STEP = 5;

type Answer = Pick<Prediction, "agent" | "step">;
type Gold = EvaluationItem["label"];

/** What counts as right. */
export interface Scorer {
  readonly id: "strict" | "official-compat";
  readonly agent: (answer: Answer, gold: Gold) => boolean;
  readonly step: (answer: Answer, gold: Gold) => boolean;
}

/** The headline: the same agent after folding remarks, case and white space; the same step as a number. */
export const strict: Scorer = {
  id: "strict",
  agent: (answer, gold) => answer.agent !== null && sameAgent(answer.agent, gold.agent),
  step: (answer, gold) => answer.step === gold.step,
};

/**
 * What the benchmark's own evaluate.py does: right if the label is a substring of the predicted text. A labelled step 1 so
 * accepts 10…19. Needed to compare with published numbers.
 */
export const officialCompat: Scorer = {
  id: "official-compat",
  agent: (answer, gold) => answer.agent?.includes(gold.agent) === true,
  step: (answer, gold) => answer.step !== null && String(answer.step).includes(String(gold.step)),
};

/** True if the predicted step lies within so many steps of the label. */
export function withinSteps(answer: Answer, gold: Gold, tolerance: number): boolean {
  return answer.step !== null && Math.abs(answer.step - gold.step) <= tolerance;
}
