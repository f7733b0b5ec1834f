import { examine } from "./examine.ts";
import type { SearchStrategy, StepEvidence } from "./strategy.ts";

/**
 * The yardstick: every step is examined, t ascending. t* is the first step with an effect; it is confirmed as the
 * earliest only if every step before it was decided.
 */
export const exhaustive: SearchStrategy = {
  id: "exhaustive",
  title: "treated against control at every step, t ascending, anytime-valid test",
  async search(experiment, settings) {
    const evidence: StepEvidence[] = [];
    let earlierUndecided = false;
    for (let step = 0; step < experiment.length; step++) {
      const found = await examine(experiment, step, settings);
      evidence.push(found);
      if (found.decision === "effect") {
        return { verdict: earlierUndecided ? "decisive-earlier-undecided" : "earliest-confirmed", step, evidence };
      }
      if (found.decision !== "no effect") earlierUndecided = true;
    }
    return { verdict: "undecided", evidence };
  },
};
