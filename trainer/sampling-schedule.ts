import type { TrainConfig } from "./config.ts";

/** Which policy samples which batch: decided by step numbers alone, never by who is faster. */
export type ScheduleConfig = Pick<TrainConfig, "steps" | "evalEvery" | "overlap">;

/** Largest number of steps between the policy that samples a batch and the one it updates; 0 without overlap. */
export function staleness({ overlap }: Pick<TrainConfig, "overlap">): number {
  return overlap?.staleness ?? 0;
}

/**
 * True where the sampler gets the weights after so many steps: after every step without overlap; else every k steps, before an
 * evaluation, and at the end.
 */
export function isSyncPoint(config: ScheduleConfig, stepsDone: number): boolean {
  const k = staleness(config);
  return k === 0 || stepsDone % k === 0 || stepsDone % config.evalEvery === 0 || stepsDone === config.steps;
}

/**
 * The batches that the policy after `stepsDone` steps samples, where that is a sync point: the batch of that very step without
 * overlap, else those of the steps after it up to the next sync point, which are thus between 1 and k steps old when they are
 * trained on. The first batch of a run is fresh.
 *
 * @returns first and last step, last excluded
 */
export function batchesSampledAt(
  config: ScheduleConfig,
  stepsDone: number,
): { readonly from: number; readonly to: number } {
  if (staleness(config) === 0) return { from: stepsDone, to: Math.min(stepsDone + 1, config.steps) };
  let next = stepsDone + 1;
  while (!isSyncPoint(config, next)) next++;
  return { from: stepsDone === 0 ? 0 : stepsDone + 1, to: Math.min(next + 1, config.steps) };
}
