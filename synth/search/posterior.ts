import type { ReplayExperiment } from "./strategy.ts";

export type Arm = Parameters<ReplayExperiment["rerun"]>[0];

export interface Count {
  readonly runs: number;
  readonly successes: number;
}

/** Outcomes of the reruns at one step. */
export type Tally = Readonly<Record<Arm, Count>>;

/** What is believed about t* after some reruns of a run of T steps; index T stands for "no correction helps". */
export interface Posterior {
  /** P(t* | outcomes): T + 1 values that sum to 1. */
  readonly decisive: readonly number[];
  /** P(the next rerun of that arm at step t succeeds | t*, outcomes), by t and then by t*. */
  readonly success: Readonly<Record<Arm, readonly (readonly number[])[]>>;
}

/** The rates a run may have; which it has, the outcomes say. All combinations are equally likely at first. */
const RATES = {
  /** Success rate of a rerun that meets no systematic error. */
  clean: [0.6, 0.8, 0.92, 0.98],
  /** Chance that a rerun from before t* errs again. */
  errsAgain: [0, 0.2, 0.4, 0.6, 0.8, 0.93],
  /** Success rate once the mistake is in the log. */
  broken: [0.01, 0.06, 0.25],
  /** Chance that the correction of a step after t* repairs the run. */
  repairs: [0.1, 0.5, 0.9],
} as const;

/** Chance that the correction of a step before t*, which needed none, breaks the run. */
const HARMS = 0.05;

/** Of the heaviest hypothesis; lighter ones are left out. */
const LEAST_WEIGHT = 1e-9;

/** One combination of rates: how often the next rerun succeeds. */
interface Rates {
  /** Control before the log breaks, and after. */
  readonly before: number;
  readonly broken: number;
  /** Treated at t*. */
  readonly clean: number;
  /** Treated at another step before the log breaks, and after, by step. */
  readonly sound: Float64Array;
  readonly later: Float64Array;
}

interface Hypothesis {
  /** t*, or T. */
  readonly decisive: number;
  /** The step whose recorded action breaks the log: t*, or any, or none (T), where no correction helps. */
  readonly breaksAt: number;
  readonly rates: Rates;
  /** Of all outcomes, plus that of the rates. */
  readonly logLikelihood: number;
}

/**
 * The posterior over (t*, rates), summed up over a grid of rates. Under t*: before it both arms run from a sound log and
 * succeed unless the error recurs; from it on control runs from a broken log; treated at t* is sound; the correction of a
 * later step repairs or does not, the same in each rerun. Where no correction helps, the log breaks anywhere or nowhere.
 *
 * @param prior probability of each step, and of "no correction helps" as the last: T + 1 values
 */
export function posteriorOf(tallies: readonly Tally[], prior: readonly number[]): Posterior {
  const length = tallies.length;
  const logPrior = prior.map(Math.log);
  const weighted = [...hypotheses(tallies)].map((hypothesis) => ({
    hypothesis,
    logWeight: (logPrior[hypothesis.decisive] ?? -Infinity) + hypothesis.logLikelihood,
  }));
  const peak = weighted.reduce((highest, { logWeight }) => Math.max(highest, logWeight), -Infinity);
  const mass = new Float64Array(length + 1);
  const treated = Array.from(mass, () => new Float64Array(length));
  const control = Array.from(mass, () => new Float64Array(length));
  for (const { hypothesis, logWeight } of weighted) {
    const weight = Math.exp(logWeight - peak);
    // Less changes no probability that matters, and most are less.
    if (weight < LEAST_WEIGHT) continue;
    const { decisive } = hypothesis;
    mass[decisive] = (mass[decisive] ?? 0) + weight;
    addSuccess(hypothesis, weight, treated[decisive], control[decisive]);
  }
  const total = mass.reduce((a, b) => a + b, 0);
  const byStep = (sums: readonly Float64Array[]): number[][] =>
    tallies.map((_, step) => sums.map((row, decisive) => (row[step] ?? 0) / (mass[decisive] || 1)));
  return {
    decisive: Array.from(mass, (value) => value / total),
    success: { treated: byStep(treated), control: byStep(control) },
  };
}

/** Adds the weighted success rates of the next reruns. */
function addSuccess(
  { decisive, breaksAt, rates }: Hypothesis,
  weight: number,
  treated: Float64Array = new Float64Array(),
  control: Float64Array = new Float64Array(),
): void {
  for (let step = 0; step < control.length; step++) {
    const corrected = step === decisive ? rates.clean : (step < breaksAt ? rates.sound : rates.later)[step];
    treated[step] = (treated[step] ?? 0) + weight * (corrected ?? 0);
    control[step] = (control[step] ?? 0) + weight * (step < breaksAt ? rates.before : rates.broken);
  }
}

function* hypotheses(tallies: readonly Tally[]): Generator<Hypothesis> {
  const length = tallies.length;
  const withoutRepair = Math.log(RATES.clean.length * RATES.errsAgain.length * RATES.broken.length);
  const withRepair = withoutRepair + Math.log(RATES.repairs.length);
  for (const broken of RATES.broken) {
    const fromBreak = sumsAfter(tallies.map(({ control }) => logLikelihood(broken, control)));
    const unrepaired = mixtures(tallies, broken, broken, 0.5);
    for (const clean of RATES.clean) {
      const corrected = tallies.map(({ treated }) => logLikelihood(clean, treated));
      const repaired = RATES.repairs.map((repairs) => mixtures(tallies, broken, clean, repairs));
      for (const errsAgain of RATES.errsAgain) {
        const before = clean * (1 - errsAgain) + broken * errsAgain;
        const sound = mixtures(tallies, before, broken, HARMS);
        const untilBreak = sumsBefore(
          tallies.map(({ control }, step) => logLikelihood(before, control) + (sound.logs[step] ?? 0)),
        );
        const around = (step: number): number => (untilBreak[step] ?? 0) + (fromBreak[step] ?? 0);
        for (const later of repaired) {
          const rates = { before, broken, clean, sound: sound.next, later: later.next };
          for (const [step, atStep] of corrected.entries()) {
            const likelihood = around(step) + atStep + (later.sumsAfter[step + 1] ?? 0);
            yield { decisive: step, breaksAt: step, rates, logLikelihood: likelihood - withRepair };
          }
        }
        const rates = { before, broken, clean, sound: sound.next, later: unrepaired.next };
        for (let step = 0; step <= length; step++) {
          const likelihood = around(step) + (unrepaired.sumsAfter[step] ?? 0) - Math.log(length + 1);
          yield { decisive: length, breaksAt: step, rates, logLikelihood: likelihood - withoutRepair };
        }
      }
    }
  }
}

function logLikelihood(rate: number, { runs, successes }: Count): number {
  return runs === 0 ? 0 : successes * Math.log(rate) + (runs - successes) * Math.log1p(-rate);
}

/** Treated reruns of a step all have the usual rate, or with probability `share` all the other: a mixture at each step. */
function mixtures(tallies: readonly Tally[], usual: number, other: number, share: number) {
  const logs: number[] = [];
  const next = new Float64Array(tallies.length);
  tallies.forEach(({ treated }, step) => {
    const a = Math.log1p(-share) + logLikelihood(usual, treated);
    const b = Math.log(share) + logLikelihood(other, treated);
    const isOther = 1 / (1 + Math.exp(a - b));
    logs.push(Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b))));
    next[step] = usual + isOther * (other - usual);
  });
  return { logs, next, sumsAfter: sumsAfter(logs) };
}

/** Σ over u < t, by t. */
function sumsBefore(values: readonly number[]): Float64Array {
  const sums = new Float64Array(values.length + 1);
  values.forEach((value, t) => {
    sums[t + 1] = (sums[t] ?? 0) + value;
  });
  return sums;
}

/** Σ over u ≥ t, by t. */
function sumsAfter(values: readonly number[]): Float64Array {
  return sumsBefore(values.toReversed()).reverse();
}
