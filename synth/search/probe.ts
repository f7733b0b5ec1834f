import type { Arm, Posterior } from "./posterior.ts";

export interface Probe {
  readonly arm: Arm;
  readonly step: number;
  /** Expected information about t*, in nats. */
  readonly information: number;
  /** Expected live calls. */
  readonly cost: number;
}

/** What a rerun without live calls counts for: it still runs the program. */
const LEAST_COST = 0.5;

/**
 * Every rerun that may be asked for next, with the mutual information of its outcome and t*. Control at the last step
 * is not among them: it replays the whole recording.
 *
 * @param analyzerCalls live calls of the correction of a step: 0 where it is there, undefined where there is none
 */
export function probes(posterior: Posterior, analyzerCalls: (step: number) => number | undefined): Probe[] {
  const length = posterior.success.control.length;
  return Array.from({ length }, (_, step) => step).flatMap((step) => {
    const live = length - 1 - step;
    const calls = analyzerCalls(step);
    const probe = (arm: Arm, cost: number): Probe => ({
      arm,
      step,
      information: information(posterior.decisive, posterior.success[arm][step] ?? []),
      cost: Math.max(cost, LEAST_COST),
    });
    return [
      ...(live === 0 ? [] : [probe("control", live)]),
      ...(calls === undefined ? [] : [probe("treated", live + calls)]),
    ];
  });
}

/** I(outcome; t*) = H(E p) − E H(p), in nats, for an outcome that succeeds with `success[t*]`. */
export function information(decisive: readonly number[], success: readonly number[]): number {
  let mean = 0;
  let within = 0;
  decisive.forEach((probability, index) => {
    const rate = success[index] ?? 0;
    mean += probability * rate;
    within += probability * entropy(rate);
  });
  return Math.max(0, entropy(mean) - within);
}

function entropy(p: number): number {
  return p <= 0 || p >= 1 ? 0 : -p * Math.log(p) - (1 - p) * Math.log1p(-p);
}
