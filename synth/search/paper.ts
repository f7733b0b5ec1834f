import { isSpent } from "./examine.ts";
import type { SearchStrategy, StepEvidence } from "./strategy.ts";

/**
 * AgenTracer's protocol (§4.1): t ascending, one rerun with the corrected action each, the first that succeeds is t*.
 * It has no control arm, so a run that would have succeeded anyway counts as a flip. Here for comparison.
 */
export const paper: SearchStrategy = {
  id: "paper",
  title: "first flip of a single rerun, t ascending (the paper's protocol, no control)",
  async search(experiment, settings) {
    const evidence: StepEvidence[] = [];
    const control = { runs: 0, successes: 0 };
    for (let step = 0; step < experiment.length; step++) {
      if (isSpent(experiment, settings)) break;
      if (!(await experiment.hasCorrection(step))) {
        evidence.push({ step, treated: control, control, decision: "no correction" });
        continue;
      }
      const flipped = await experiment.rerun("treated", step, 0);
      const treated = { runs: 1, successes: Number(flipped) };
      evidence.push({ step, treated, control, decision: flipped ? "flip" : "no flip" });
      if (flipped) return { verdict: "first-flip", step, evidence };
    }
    return { verdict: "undecided", evidence };
  },
};
