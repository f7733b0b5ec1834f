import { examine, isSpent } from "./examine.ts";
import type { Arm, Tally } from "./posterior.ts";
import type { ReplayExperiment, SearchSettings, StepEvidence } from "./strategy.ts";

/** A failed run with everything its reruns have said so far. Each rerun gets the next replicate number of its arm and step. */
export interface RunUnderSearch {
  /** All outcomes, by step. */
  readonly tallies: readonly Tally[];
  /** Examinations made, by step; an examination takes fresh reruns, never those that led to it. */
  readonly examined: ReadonlyMap<number, StepEvidence>;
  isSpent(): boolean;
  /** Live calls that the correction of a step still costs: 0 where it is there, undefined where the step has none. */
  analyzerCalls(step: number): number | undefined;
  /** Reruns once, unless the step turns out to have no correction. */
  probe(arm: Arm, step: number): Promise<void>;
  examine(step: number): Promise<void>;
  /** Evidence of every step that was rerun, and of all up to `named`. */
  evidence(named: number | undefined): StepEvidence[];
}

const NO_RUNS = { runs: 0, successes: 0 };
const EMPTY: Tally = { treated: NO_RUNS, control: NO_RUNS };

export function runUnderSearch(experiment: ReplayExperiment, settings: SearchSettings): RunUnderSearch {
  const tallies = Array.from({ length: experiment.length }, () => EMPTY);
  const examined = new Map<number, StepEvidence>();
  const corrections = new Map<number, boolean>();

  const tallyOf = (step: number): Tally => tallies[step] ?? EMPTY;
  const count = (step: number, added: Tally): void => {
    const tally = tallyOf(step);
    const sum = (arm: Arm) => ({
      runs: tally[arm].runs + added[arm].runs,
      successes: tally[arm].successes + added[arm].successes,
    });
    tallies[step] = { treated: sum("treated"), control: sum("control") };
  };

  return {
    tallies,
    examined,
    isSpent: () => isSpent(experiment, settings),
    analyzerCalls: (step) => (corrections.has(step) ? (corrections.get(step) === true ? 0 : undefined) : 1),
    async probe(arm, step) {
      if (arm === "treated") {
        const has = await experiment.hasCorrection(step);
        corrections.set(step, has);
        if (!has) return;
      }
      const success = await experiment.rerun(arm, step, tallyOf(step)[arm].runs);
      count(step, { ...EMPTY, [arm]: { runs: 1, successes: Number(success) } });
    },
    async examine(step) {
      const { treated, control } = tallyOf(step);
      const found = await examine(experiment, step, settings, { treated: treated.runs, control: control.runs });
      if (found.treated.runs > 0) corrections.set(step, true);
      if (found.decision === "no correction") corrections.set(step, false);
      examined.set(step, { ...found, examination: examined.size + 1 });
      count(step, found);
    },
    evidence: (named = -1) =>
      tallies.flatMap((tally, step) => {
        const found = examined.get(step);
        const isConcerned = step <= named || found !== undefined || corrections.has(step) || tally.control.runs > 0;
        if (!isConcerned) return [];
        const unexamined = corrections.get(step) === false ? "no correction" : "undecided";
        const { eValue, examination } = found ?? {};
        return [
          {
            step,
            ...tally,
            ...(eValue === undefined ? {} : { eValue }),
            ...(examination === undefined ? {} : { examination }),
            decision: found?.decision ?? unexamined,
          },
        ];
      }),
  };
}
