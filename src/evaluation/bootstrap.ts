import { type RandomStream, stream } from "../random.ts";
import type { Interval } from "./statistics.ts";

/** One observed value and the cluster (question, group of tasks) it belongs to. */
export interface ClusteredValue {
  readonly value: number;
  readonly cluster: string;
}

export interface ClusteredMean {
  readonly mean: number;
  /** Percentile interval, 95%. */
  readonly interval: Interval;
  /** Standard deviation of the resampled means. */
  readonly standardError: number;
  readonly clusters: number;
  readonly n: number;
}

export interface BootstrapSettings {
  readonly seed: number | string;
  /** Resamples; 10,000 unless told. */
  readonly resamples?: number;
}

export const DEFAULT_RESAMPLES = 10_000;

/** Linear interpolation between order statistics (type 7, as numpy and R do it). `sorted` is ascending and not empty. */
function quantile(sorted: Float64Array, q: number): number {
  const position = q * (sorted.length - 1);
  const below = Math.floor(position);
  const low = sorted[below] ?? Number.NaN;
  const high = sorted[Math.min(below + 1, sorted.length - 1)] ?? Number.NaN;
  return low + (high - low) * (position - below);
}

/** Sum and size of each cluster, in an order that does not depend on the order of the values. */
function clusterSums(values: readonly ClusteredValue[]): { readonly sums: Float64Array; readonly sizes: Float64Array } {
  const byCluster = new Map<string, { sum: number; size: number }>();
  for (const { value, cluster } of values) {
    const entry = byCluster.get(cluster) ?? { sum: 0, size: 0 };
    byCluster.set(cluster, { sum: entry.sum + value, size: entry.size + 1 });
  }
  const entries = [...byCluster].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, entry]) => entry);
  return { sums: Float64Array.from(entries, (e) => e.sum), sizes: Float64Array.from(entries, (e) => e.size) };
}

function resampledMean(sums: Float64Array, sizes: Float64Array, random: RandomStream): number {
  let sum = 0;
  let size = 0;
  for (let draw = 0; draw < sums.length; draw++) {
    const cluster = random.int(sums.length);
    sum += sums[cluster] ?? 0;
    size += sizes[cluster] ?? 0;
  }
  return sum / size;
}

/**
 * The mean with a cluster bootstrap: whole clusters are drawn with replacement, so values that share a question (or
 * are epochs of one log) count as one piece of evidence.
 *
 * @throws RangeError without values
 */
export function clusteredMean(values: readonly ClusteredValue[], settings: BootstrapSettings): ClusteredMean {
  if (values.length === 0) throw new RangeError("no mean of no values");
  const { sums, sizes } = clusterSums(values);
  const random = stream(settings.seed, "clustered-bootstrap");
  const means = new Float64Array(settings.resamples ?? DEFAULT_RESAMPLES);
  for (let r = 0; r < means.length; r++) means[r] = resampledMean(sums, sizes, random);
  means.sort();
  const centre = means.reduce((total, mean) => total + mean, 0) / means.length;
  const squares = means.reduce((total, mean) => total + (mean - centre) ** 2, 0);
  return {
    mean: sums.reduce((total, sum) => total + sum, 0) / values.length,
    interval: { low: quantile(means, 0.025), high: quantile(means, 0.975) },
    standardError: Math.sqrt(squares / Math.max(1, means.length - 1)),
    clusters: sums.length,
    n: values.length,
  };
}

/** The mean difference first − second over pairs, clusters drawn whole: the paired comparison of two methods. */
export function pairedBootstrap(
  pairs: readonly { readonly first: number; readonly second: number; readonly cluster: string }[],
  settings: BootstrapSettings,
): ClusteredMean {
  return clusteredMean(
    pairs.map((pair) => ({ value: pair.first - pair.second, cluster: pair.cluster })),
    settings,
  );
}
