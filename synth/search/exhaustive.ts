import { addBlock, type EProcess, emptyEProcess, probabilityOfEffect } from "./e-process.ts";
import type { ReplayExperiment, SearchSettings, SearchStrategy, StepEvidence } from "./strategy.ts";

/**
 * The yardstick: t ascending, treated and control reruns in blocks until the e-process passes 1/α (an effect), an effect
 * worth finding has become improbable (none), or the blocks run out (undecided). t* is the first step with an effect; it is
 * confirmed as the earliest only if every step before it was decided.
 *
 * A correction that repeats the recorded action is rerun like any other: that nothing changes is for the outcomes to say.
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

async function examine(experiment: ReplayExperiment, step: number, settings: SearchSettings): Promise<StepEvidence> {
  if (!(await experiment.hasCorrection(step))) return evidenceOf(step, emptyEProcess, "no correction");
  let process = emptyEProcess;
  while (process.blocks < settings.maxBlocks) {
    const replicate = process.blocks;
    const treated = await experiment.rerun("treated", step, replicate);
    const control = await experiment.rerun("control", step, replicate);
    process = addBlock(process, treated, control);
    if (process.eValue >= 1 / settings.alpha) return evidenceOf(step, process, "effect");
    if (probabilityOfEffect(process, settings.minEffect) < settings.futility)
      return evidenceOf(step, process, "no effect");
  }
  return evidenceOf(step, process, "undecided");
}

function evidenceOf(step: number, process: EProcess, decision: StepEvidence["decision"]): StepEvidence {
  return {
    step,
    treated: { runs: process.blocks, successes: process.treated },
    control: { runs: process.blocks, successes: process.control },
    eValue: process.eValue,
    decision,
  };
}
