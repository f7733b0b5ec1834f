import { stream } from "../../src/random.ts";
import type { ReplayExperiment } from "../search/strategy.ts";
import type { SimulatorConfig } from "../simulator/simulator.ts";

/** How reruns of a failed run come out, by the two regimes of failure. */
export interface RegimeProfile {
  readonly regime: SimulatorConfig["regime"];
  /** Success rate of a rerun that meets no error of its own. */
  readonly clean: number;
  /** Chance that a rerun from before t* errs there again. */
  readonly errsAgain: number;
  /** Success rate once the mistake is in the log. */
  readonly broken: number;
  /** Chance that the correction of a later step repairs the run, the same in each rerun. */
  readonly repairs: number;
}

/** The simulator's own regimes at the given noise; a model server's may be either, so a plan is made for both. */
export function regimeProfiles(noise: number): Readonly<Record<SimulatorConfig["regime"], RegimeProfile>> {
  return {
    slip: { regime: "slip", clean: 1 - noise, errsAgain: 0.3, broken: 0.02, repairs: 0 },
    systematic: { regime: "systematic", clean: 1 - noise, errsAgain: 0.9, broken: 0.02, repairs: 0.5 },
  };
}

/** Calls that a made-up run has cost, by what was asked at which step. */
export interface CountedCalls {
  /** Calls of the agents' model at each step. */
  readonly agents: readonly number[];
  /** Calls of the analyzer about each step. */
  readonly analyzer: readonly number[];
}

export interface MadeRun extends ReplayExperiment {
  readonly decisive: number;
  counted(): CountedCalls;
}

/** A failed run of that length and profile with a drawn t*, whose reruns cost what real ones would. */
export function makeRun(profile: RegimeProfile, length: number, seed: number, id: string): MadeRun {
  const draw = (...name: readonly (string | number)[]) => stream(seed, "plan", profile.regime, id, ...name);
  const decisive = draw("t*").int(length);
  const before = profile.clean * (1 - profile.errsAgain) + profile.broken * profile.errsAgain;
  const agents = Array.from({ length }, () => 0);
  const analyzer = Array.from({ length }, () => 0);
  const rate = (arm: "treated" | "control", step: number): number => {
    if (step < decisive) return before;
    if (arm === "control") return profile.broken;
    return step === decisive || draw("repairs", step).chance(profile.repairs) ? profile.clean : profile.broken;
  };
  const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
  return {
    length,
    decisive,
    async hasCorrection(step) {
      analyzer[step] = 1;
      return true;
    },
    async rerun(arm, step, replicate) {
      for (let live = step + 1; live < length; live++) agents[live] = (agents[live] ?? 0) + 1;
      return draw(arm, step, replicate).chance(rate(arm, step));
    },
    get liveCalls() {
      return sum(agents) + sum(analyzer);
    },
    counted: () => ({ agents, analyzer }),
  };
}
