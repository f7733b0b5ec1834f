import { stream } from "../random.ts";
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

/** One piece of evidence with a value in each of several columns, or the sums of several pieces of one cluster. */
export interface ClusteredRow {
  readonly cluster: string;
  readonly values: readonly number[];
  /** Pieces that the values are the sums of; 1 unless told. */
  readonly count?: number;
}

/** Sums (cluster by cluster, columns inside) and sizes, in an order that does not depend on the order of the rows. */
function clusterSums(rows: readonly ClusteredRow[], columns: number) {
  const byCluster = new Map<string, { sums: Float64Array; size: number }>();
  for (const { values, cluster, count = 1 } of rows) {
    let entry = byCluster.get(cluster);
    if (entry === undefined) {
      entry = { sums: new Float64Array(columns), size: 0 };
      byCluster.set(cluster, entry);
    }
    for (let c = 0; c < columns; c++) entry.sums[c] = (entry.sums[c] ?? 0) + (values[c] ?? 0);
    entry.size += count;
  }
  const entries = [...byCluster].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, entry]) => entry);
  const sums = new Float64Array(entries.length * columns);
  entries.forEach((entry, position) => {
    sums.set(entry.sums, position * columns);
  });
  return { sums, sizes: Float64Array.from(entries, (entry) => entry.size) };
}

/**
 * The mean with a cluster bootstrap: whole clusters are drawn with replacement, so values that share a question (or
 * are epochs of one log) count as one piece of evidence.
 *
 * @throws RangeError without values
 */
export function clusteredMean(values: readonly ClusteredValue[], settings: BootstrapSettings): ClusteredMean {
  const rows = values.map(({ value, cluster }) => ({ cluster, values: [value] }));
  const [mean] = clusteredMeans(rows, 1, settings);
  if (mean === undefined) throw new RangeError("no mean of no values");
  return mean;
}

/**
 * `clusteredMean` of several columns over the same rows. Each column gets what it would get alone: the draws depend on
 * the clusters only, and are made once.
 *
 * @throws RangeError without rows
 */
export function clusteredMeans(
  rows: readonly ClusteredRow[],
  columns: number,
  settings: BootstrapSettings,
): ClusteredMean[] {
  if (rows.length === 0) throw new RangeError("no mean of no values");
  const { sums, sizes } = clusterSums(rows, columns);
  const random = stream(settings.seed, "clustered-bootstrap");
  const resamples = settings.resamples ?? DEFAULT_RESAMPLES;
  const means = Array.from({ length: columns }, () => new Float64Array(resamples));
  const drawn = new Float64Array(columns);
  for (let r = 0; r < resamples; r++) {
    drawn.fill(0);
    let size = 0;
    for (let draw = 0; draw < sizes.length; draw++) {
      const cluster = random.int(sizes.length);
      size += sizes[cluster] ?? 0;
      for (let c = 0; c < columns; c++) drawn[c] = (drawn[c] ?? 0) + (sums[cluster * columns + c] ?? 0);
    }
    for (let c = 0; c < columns; c++) {
      const column = means[c];
      if (column !== undefined) column[r] = (drawn[c] ?? 0) / size;
    }
  }
  const n = sizes.reduce((total, size) => total + size, 0);
  return means.map((column, c) => {
    let total = 0;
    for (let cluster = 0; cluster < sizes.length; cluster++) total += sums[cluster * columns + c] ?? 0;
    return summary(total / n, column, sizes.length, n);
  });
}

function summary(mean: number, resampled: Float64Array, clusters: number, n: number): ClusteredMean {
  resampled.sort();
  const centre = resampled.reduce((total, value) => total + value, 0) / resampled.length;
  const squares = resampled.reduce((total, value) => total + (value - centre) ** 2, 0);
  return {
    mean,
    interval: { low: quantile(resampled, 0.025), high: quantile(resampled, 0.975) },
    standardError: Math.sqrt(squares / Math.max(1, resampled.length - 1)),
    clusters,
    n,
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
