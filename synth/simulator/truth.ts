import { type Recording, rerun, type Setting, seededModel } from "../replay.ts";
import type { SimulatedModel } from "./players/simulated-model.ts";
import type { SimulatorConfig } from "./simulator.ts";

/**
 * The true decisive step of a simulated failed run: the first step after which even an error-free continuation fails.
 * Computed by replaying prefixes with a simulator that never errs; search never sees it.
 */
export async function trueDecisiveStep(
  setting: Setting,
  recording: Recording,
  open: SimulatedModel,
): Promise<{ readonly step: number; readonly agent: string } | undefined> {
  const flawless: SimulatorConfig = {
    provider: "simulator",
    regime: "slip",
    hardRate: 0,
    noise: 0,
    analyzerErrorRate: 0,
    seed: 0,
  };
  const model = seededModel(open(flawless), 0, "truth");
  for (const { index, lane } of recording.tape.calls) {
    const { outcome } = await rerun(setting, recording.tape, { at: index + 1 }, model);
    if (!outcome.success) return { step: index, agent: lane };
  }
  return undefined;
}

/**
 * The steps at which the simulator erred in a recorded run. Its answers depend on request and seed alone, so its own
 * ledger of the run can be drawn up again from the tape.
 *
 * @param run seed and name under which the run was recorded
 */
export async function stepsInError(
  recording: Recording,
  config: SimulatorConfig,
  open: SimulatedModel,
  run: readonly [number, ...(string | number)[]],
): Promise<readonly number[]> {
  const erred: number[] = [];
  const model = seededModel(
    open(config, (turn) => {
      if (turn.erred) erred.push(turn.step);
    }),
    ...run,
  );
  for (const { request } of recording.tape.calls) await model.complete(request);
  return erred;
}
