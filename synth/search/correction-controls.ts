import type { Count } from "./posterior.ts";
import type { RunExperiment } from "./replay-experiment.ts";

/** Reruns that say whether a correction helps because it corrects. An arm is absent where the step has no action for it. */
export interface CorrectionControls {
  readonly step: number;
  /** The recorded action in other words: what editing alone does. */
  readonly placebo?: Count;
  /** The recorded action with the answer given away: what knowing the answer does. */
  readonly hint?: Count;
}

/**
 * Reruns the controlling arms at a step that a search has named. They decide nothing about the label; they are evidence.
 *
 * @param reruns of each arm
 * @throws RootstepError those of the experiment
 */
export async function correctionControls(
  experiment: Pick<RunExperiment, "hasArm" | "rerun">,
  step: number,
  reruns: number,
): Promise<CorrectionControls> {
  const count = async (arm: "placebo" | "hint"): Promise<Count | undefined> => {
    if (!(await experiment.hasArm(arm, step))) return undefined;
    let successes = 0;
    for (let replicate = 0; replicate < reruns; replicate++) {
      successes += Number(await experiment.rerun(arm, step, replicate));
    }
    return { runs: reruns, successes };
  };
  const placebo = await count("placebo");
  const hint = await count("hint");
  return { step, ...(placebo === undefined ? {} : { placebo }), ...(hint === undefined ? {} : { hint }) };
}
