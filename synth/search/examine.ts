import { addBlock, type EProcess, emptyEProcess, probabilityOfEffect } from "./e-process.ts";
import type { ReplayExperiment, SearchSettings, StepEvidence } from "./strategy.ts";

/** Replicate numbers from which an examination counts on, so that its reruns are fresh ones. */
export interface FirstReplicates {
  readonly treated: number;
  readonly control: number;
}

/**
 * Is there an effect at this step? Treated and control reruns in blocks until the e-process passes 1/α (an effect), an
 * effect worth finding has become improbable (none), or the blocks or the run's live calls are spent (undecided).
 *
 * A correction that repeats the recorded action is rerun like any other: that nothing changes is for the outcomes to say.
 */
export async function examine(
  experiment: ReplayExperiment,
  step: number,
  settings: SearchSettings,
  first: FirstReplicates = { treated: 0, control: 0 },
): Promise<StepEvidence> {
  if (isSpent(experiment, settings)) return evidenceOf(step, emptyEProcess, "undecided");
  if (!(await experiment.hasCorrection(step))) return evidenceOf(step, emptyEProcess, "no correction");
  let process = emptyEProcess;
  while (process.blocks < settings.maxBlocks && !isSpent(experiment, settings)) {
    const treated = await experiment.rerun("treated", step, first.treated + process.blocks);
    const control = await experiment.rerun("control", step, first.control + process.blocks);
    process = addBlock(process, treated, control);
    if (process.eValue >= 1 / settings.alpha) return evidenceOf(step, process, "effect");
    if (probabilityOfEffect(process, settings.minEffect) < settings.futility)
      return evidenceOf(step, process, "no effect");
  }
  return evidenceOf(step, process, "undecided");
}

/** Whether the run has used up its live calls; a block once begun is finished. */
export function isSpent({ liveCalls }: ReplayExperiment, { maxLiveCalls }: SearchSettings): boolean {
  return maxLiveCalls !== undefined && liveCalls >= maxLiveCalls;
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
