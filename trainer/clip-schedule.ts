/**
 * The clip bound of §4.2: B_s = max(0.2·B0, B0·(1 − s/S)). It starts wide for exploration and narrows to a fifth.
 *
 * @param s step, 0-based: updates of the policy before this one, 0 ≤ s < S
 * @param S steps in all
 * @param B0 bound at the start (not given in the paper)
 */
export function clipBound(s: number, S: number, B0: number): number {
  return Math.max(0.2 * B0, B0 * (1 - s / S));
}

/** How the learning rate moves over a run. */
export interface LearningRateSchedule {
  readonly learningRate: number;
  /** Steps over which the rate rises linearly from learningRate/warmup. */
  readonly warmup: number;
  readonly decay: "constant" | "linear" | "cosine";
  /** The rate never falls below this fraction of learningRate. */
  readonly decayFloor: number;
}

/** Learning rate at step s of S (0-based). */
export function learningRateAt(s: number, S: number, schedule: LearningRateSchedule): number {
  const rising = schedule.warmup === 0 ? 1 : Math.min(1, (s + 1) / schedule.warmup);
  return schedule.learningRate * rising * Math.max(schedule.decayFloor, remaining(s / S, schedule.decay));
}

function remaining(progress: number, decay: LearningRateSchedule["decay"]): number {
  switch (decay) {
    case "constant":
      return 1;
    case "linear":
      return 1 - progress;
    case "cosine":
      return (1 + Math.cos(Math.PI * progress)) / 2;
  }
}
