import { stream } from "../../src/random.ts";
import { type Cell, ERROR_AGAIN, type FailedRun } from "./failed-run.ts";

/** Success rate of a run with an error in its log. */
const LUCK = 0.02;

/**
 * Failed runs of a made-up process, without agents: a hard step anywhere, errors at other steps with the cell's noise, the
 * first error is t*. A rerun errs anew after its cut; the correction of a later step repairs the log or does not, by step.
 */
export function* madeRuns(cell: Cell, seed: number): Generator<FailedRun> {
  for (let draw = 0; ; draw++) {
    const run = madeRun(cell, seed, draw);
    if (run !== undefined) yield run;
  }
}

function madeRun({ regime, noise, length }: Cell, seed: number, draw: number): FailedRun | undefined {
  const name = [regime, noise, length, draw] as const;
  const random = stream(seed, "made run", ...name);
  const hard = random.int(length);
  const slipRate = 1 - (1 - noise) ** (1 / length);
  const errs = (step: number, chance: (p: number) => boolean): boolean =>
    chance(step === hard ? 1 - (1 - ERROR_AGAIN[regime]) * (1 - slipRate) : slipRate);
  const steps = Array.from({ length }, (_, step) => step);
  const truth = steps.find((step) => errs(step, random.chance));
  if (truth === undefined) return undefined;
  const share = random.next();
  const repairs = steps.map(() => random.chance(share));
  return {
    id: `made-${draw}`,
    truth,
    length,
    open() {
      let liveCalls = 0;
      const asked = new Set<number>();
      return {
        length,
        async hasCorrection(step) {
          if (!asked.has(step)) liveCalls++;
          asked.add(step);
          return true;
        },
        async rerun(arm, step, replicate) {
          liveCalls += length - 1 - step;
          const rerun = stream(seed, "made rerun", ...name, arm, step, replicate);
          const treated = arm === "treated";
          const sound = step < truth || (treated && (step === truth || repairs[step] === true));
          return (sound && !steps.slice(step + 1).some((later) => errs(later, rerun.chance))) || rerun.chance(LUCK);
        },
        get liveCalls() {
          return liveCalls;
        },
      };
    },
  };
}
