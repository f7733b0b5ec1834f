/** ε under the standard deviation, as in verl's GRPO. */
export const STD_EPSILON = 1e-6;

/** Rewards that differ by less than this are equal: the group teaches nothing. */
const DEAD_SPREAD = 1e-9;

export interface GroupAdvantages {
  /** One advantage per completion of the group; 0 for those left out. */
  readonly advantages_G: readonly number[];
  readonly mean: number;
  /** Sample standard deviation (n − 1), as torch.std and verl compute it; 0 for fewer than two rewards. */
  readonly std: number;
  /** True where no completion is better than another: no gradient comes from this group. */
  readonly dead: boolean;
}

/**
 * GRPO's advantages within the group of one prompt: (R − mean) / (std + ε), or R − mean without normalisation (§4.2).
 *
 * @param rewards_G one reward per completion
 * @param included_G false for completions that are left out of the baseline (masked truncated ones); all by default
 */
export function groupAdvantages(
  rewards_G: readonly number[],
  options: { readonly normalizeStd: boolean; readonly included_G?: readonly boolean[] },
): GroupAdvantages {
  const isIncluded = (g: number): boolean => options.included_G?.[g] ?? true;
  const rewards = rewards_G.filter((_, g) => isIncluded(g));
  const mean = average(rewards);
  const std = sampleStd(rewards, mean);
  const dead = rewards.length < 2 || Math.max(...rewards) - Math.min(...rewards) < DEAD_SPREAD;
  const scale = options.normalizeStd ? 1 / (std + STD_EPSILON) : 1;
  return {
    advantages_G: rewards_G.map((reward, g) => (dead || !isIncluded(g) ? 0 : (reward - mean) * scale)),
    mean,
    std,
    dead,
  };
}

/** Arithmetic mean; 0 for an empty list. */
export function average(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Standard deviation with n − 1; 0 for fewer than two values. */
export function sampleStd(values: readonly number[], mean = average(values)): number {
  if (values.length < 2) return 0;
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1));
}
