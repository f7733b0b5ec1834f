import { wilsonInterval } from "../../src/evaluation/statistics.ts";
import { stream } from "../../src/random.ts";
import type { SynthConfig } from "../pipeline/config.ts";
import { addBlock, emptyEProcess, probabilityOfEffect } from "../search/e-process.ts";
import { stoppingAlpha } from "../search/label-e-value.ts";
import type { SearchStrategy } from "../search/strategy.ts";
import { type CountedCalls, makeRun, type RegimeProfile } from "./profile.ts";

/** One made-up run: what was asked, and whether it gave a label. */
export interface SimulatedUnit extends CountedCalls {
  readonly labelled: boolean;
}

/** Made-up runs per strategy and regime: fewer of the long ones, so that a plan takes about a second. */
export const runsToSimulate = (length: number): number => Math.min(8, Math.max(4, Math.round(64 / length)));

/** Runs the strategy itself on made-up failed runs, one of each given length. */
export async function simulateSearch(
  strategy: SearchStrategy,
  profile: RegimeProfile,
  lengths: readonly number[],
  { seed, search }: Pick<SynthConfig, "seed" | "search">,
): Promise<SimulatedUnit[]> {
  const settings = { ...search, alpha: stoppingAlpha(search.alpha, search.fdr) };
  const units: SimulatedUnit[] = [];
  for (const [number, length] of lengths.entries()) {
    const run = makeRun(profile, length, seed, `run ${number}`);
    const prior =
      search.prior === undefined ? undefined : guessed(run.decisive, length, search.priorStrength, seed, number);
    const { verdict, step } = await strategy.search(run, settings, prior);
    const labelled = verdict === "earliest-confirmed" || verdict === "first-flip";
    if (labelled && step !== undefined) {
      for (let rerun = 0; rerun < 2 * search.controlReruns; rerun++) await run.rerun("control", step, rerun);
    }
    units.push({ ...run.counted(), labelled });
  }
  return units;
}

/** What an attribution method of that step accuracy says: its named step has the strength, the others share the rest. */
function guessed(decisive: number, length: number, strength: number, seed: number, run: number): number[] {
  if (length === 1) return [1];
  const random = stream(seed, "plan", "prior", run);
  const other = (decisive + 1 + random.int(length - 1)) % length;
  const named = random.chance(strength) ? decisive : other;
  return Array.from({ length }, (_, step) => (step === named ? strength : (1 - strength) / (length - 1)));
}

/** How often a perturbed run fails, in a plan. */
const PERTURBED_FAILS = 0.8;

/** Admission and points of one successful run, by the same stopping rules as injection itself. */
export function simulateInjection(
  profile: RegimeProfile,
  length: number,
  { seed, search, inject }: Pick<SynthConfig, "seed" | "search" | "inject">,
  number: number,
): SimulatedUnit {
  const random = stream(seed, "plan", "inject", profile.regime, number);
  const agents = Array.from({ length }, () => 0);
  const analyzer = Array.from({ length }, () => 0);
  const count = (from: number): void => {
    for (let step = from; step < length; step++) agents[step] = (agents[step] ?? 0) + 1;
  };
  let [runs, successes] = [0, 0];
  const bound = (extra: number): number => (runs === 0 ? 0 : wilsonInterval(successes + extra, runs + extra).low);
  while (runs < inject.maxAdmissionReruns && bound(0) < inject.minControlSuccess) {
    if (runs > 0 && bound(inject.maxAdmissionReruns - runs) < inject.minControlSuccess) break;
    count(0);
    runs++;
    successes += Number(random.chance(profile.clean));
  }
  if (bound(0) < inject.minControlSuccess) return { agents, analyzer, labelled: false };
  const points = random.shuffle(Array.from({ length }, (_, step) => step)).slice(0, inject.points);
  for (const point of points) {
    let process = emptyEProcess;
    while (process.blocks < search.maxBlocks) {
      count(point + 1);
      count(point + 1);
      process = addBlock(process, random.chance(PERTURBED_FAILS), random.chance(1 - profile.clean));
      if (process.eValue >= 1 / search.alpha) return { agents, analyzer, labelled: true };
      if (probabilityOfEffect(process, search.minEffect) < search.futility) break;
    }
  }
  return { agents, analyzer, labelled: false };
}
