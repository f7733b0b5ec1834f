import { stream } from "../../src/random.ts";

/** One failed run as numbers, and the cluster (task group) it belongs to. */
export interface Sample {
  readonly features: readonly number[];
  readonly cluster: string;
}

export interface TwoSampleResult {
  /** P(a run of the second set scores higher than one of the first), out of fold: .5 where nothing tells them apart. */
  readonly auc: number;
  /** 95%, percentile bootstrap over clusters, the fitted scores held fixed. */
  readonly interval: { readonly low: number; readonly high: number };
  readonly folds: number;
  readonly n: { readonly first: number; readonly second: number };
}

interface Scored {
  readonly score: number;
  readonly isSecond: boolean;
  readonly fold: number;
  readonly cluster: string;
}

const [FOLDS, RESAMPLES, RIDGE] = [5, 1000, 1];

/**
 * A classifier two-sample test (Lopez-Paz & Oquab 2017): can a logistic regression on these features tell the sets apart?
 * Cross-validated with whole clusters in one fold; the AUC is that within folds, weighted by their pairs, since scores
 * of different fits have no common zero.
 *
 * @returns undefined where a set is too small to be in two folds
 */
export function twoSampleAuc(
  first: readonly Sample[],
  second: readonly Sample[],
  seed: number,
): TwoSampleResult | undefined {
  const all = [
    ...first.map((sample) => ({ ...sample, isSecond: false })),
    ...second.map((sample) => ({ ...sample, isSecond: true })),
  ];
  const clustersOf = (samples: readonly Sample[]): Set<string> => new Set(samples.map(({ cluster }) => cluster));
  const smaller = Math.min(clustersOf(first).size, clustersOf(second).size);
  if (smaller < 2) return undefined;
  const folds = Math.min(FOLDS, smaller);
  const foldOf = foldsOf(clustersOf(first), clustersOf(second), folds, seed);
  const scored = Array.from({ length: folds }, (_, fold) => fold).flatMap((fold) => {
    const isTest = ({ cluster }: Sample): boolean => foldOf.get(cluster) === fold;
    const train = all.filter((sample) => !isTest(sample));
    const score = logisticScore(
      train.map(({ features }) => features),
      train.map(({ isSecond }) => isSecond),
    );
    return all.filter(isTest).map(({ features, isSecond, cluster }) => ({
      score: score(features),
      isSecond,
      fold,
      cluster,
    }));
  });
  const value = withinFoldAuc(scored);
  if (value === undefined) return undefined;
  return { auc: value, interval: bootstrap(scored, seed), folds, n: { first: first.length, second: second.length } };
}

/** Clusters dealt out to the folds, those of each set in turn, so that every fold has its share of both. */
function foldsOf(
  first: ReadonlySet<string>,
  second: ReadonlySet<string>,
  folds: number,
  seed: number,
): ReadonlyMap<string, number> {
  const deal = (clusters: readonly string[], name: string): [string, number][] =>
    stream(seed, "two-sample", name)
      .shuffle([...clusters].sort())
      .map((cluster, position) => [cluster, position % folds]);
  const onlySecond = [...second].filter((cluster) => !first.has(cluster));
  const both = [...second].filter((cluster) => first.has(cluster));
  const onlyFirst = [...first].filter((cluster) => !second.has(cluster));
  return new Map([...deal(onlyFirst, "first"), ...deal(onlySecond, "second"), ...deal(both, "both")]);
}

function withinFoldAuc(scored: readonly Scored[]): number | undefined {
  let [sum, pairs] = [0, 0];
  for (const fold of new Set(scored.map((one) => one.fold))) {
    const inFold = scored.filter((one) => one.fold === fold);
    const scores = (isSecond: boolean): number[] =>
      inFold.filter((one) => one.isSecond === isSecond).map(({ score }) => score);
    const [low, high] = [scores(false), scores(true)];
    if (low.length === 0 || high.length === 0) continue;
    const weight = low.length * high.length;
    sum += weight * auc(low, high);
    pairs += weight;
  }
  return pairs === 0 ? undefined : sum / pairs;
}

function bootstrap(scored: readonly Scored[], seed: number): { low: number; high: number } {
  const byCluster = new Map<string, Scored[]>();
  for (const one of scored) byCluster.set(one.cluster, [...(byCluster.get(one.cluster) ?? []), one]);
  const clusters = [...byCluster].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, members]) => members);
  const random = stream(seed, "two-sample-bootstrap");
  const values: number[] = [];
  for (let resample = 0; resample < RESAMPLES; resample++) {
    const value = withinFoldAuc(clusters.flatMap(() => random.pick(clusters)));
    if (value !== undefined) values.push(value);
  }
  values.sort((a, b) => a - b);
  const at = (q: number): number => values[Math.round(q * (values.length - 1))] ?? Number.NaN;
  return { low: at(0.025), high: at(0.975) };
}

/** P(high > low) + ½ P(equal), by ranks (Mann & Whitney 1947). NaN where a side is empty. */
export function auc(low: readonly number[], high: readonly number[]): number {
  const all = [...low.map((value) => ({ value, isHigh: 0 })), ...high.map((value) => ({ value, isHigh: 1 }))];
  all.sort((a, b) => a.value - b.value);
  let rankSum = 0;
  for (let start = 0; start < all.length; ) {
    let end = start;
    let highs = 0;
    while (end < all.length && all[end]?.value === all[start]?.value) highs += all[end++]?.isHigh ?? 0;
    rankSum += (highs * (start + 1 + end)) / 2;
    start = end;
  }
  return (rankSum - (high.length * (high.length + 1)) / 2) / (low.length * high.length);
}

/**
 * Logistic regression with an L2 penalty of ½·RIDGE on the slopes of standardised features (not the intercept), fitted by
 * Newton's method.
 * @returns the log-odds of a new sample
 */
export function logisticScore(
  rows: readonly (readonly number[])[],
  isPositive: readonly boolean[],
): (features: readonly number[]) => number {
  const width = rows[0]?.length ?? 0;
  const moments = Array.from({ length: width }, (_, column) => {
    const mean = rows.reduce((sum, row) => sum + (row[column] ?? 0), 0) / rows.length;
    const variance = rows.reduce((sum, row) => sum + ((row[column] ?? 0) - mean) ** 2, 0) / rows.length;
    return { mean, deviation: Math.sqrt(variance) || 1 };
  });
  const standardised = (row: readonly number[]): number[] => [
    1,
    ...moments.map(({ mean, deviation }, column) => ((row[column] ?? 0) - mean) / deviation),
  ];
  const design = rows.map(standardised);
  const weights = Array.from({ length: width + 1 }, () => 0);
  const logOdds = (x: readonly number[]): number => x.reduce((sum, value, j) => sum + value * (weights[j] ?? 0), 0);
  for (let iteration = 0; iteration < 50; iteration++) {
    const gradient = weights.map((weight, j) => (j === 0 ? 0 : -RIDGE * weight));
    const hessian = weights.map((_, j) => weights.map((__, k) => (j === k && j > 0 ? RIDGE : 0)));
    for (const [i, x] of design.entries()) {
      const p = 1 / (1 + Math.exp(-logOdds(x)));
      const residual = Number(isPositive[i]) - p;
      for (const [j, value] of x.entries()) {
        gradient[j] = (gradient[j] ?? 0) + value * residual;
        const row = hessian[j];
        if (row !== undefined)
          for (const [k, other] of x.entries()) row[k] = (row[k] ?? 0) + p * (1 - p) * value * other;
      }
    }
    const step = solve(hessian, gradient);
    for (const [j, change] of step.entries()) weights[j] = (weights[j] ?? 0) + change;
    if (Math.max(...step.map(Math.abs)) < 1e-9) break;
  }
  return (features) => logOdds(standardised(features));
}

/** Solves a small symmetric positive definite system by elimination; it changes its arguments. */
function solve(matrix: number[][], right: number[]): number[] {
  const n = right.length;
  for (let pivot = 0; pivot < n; pivot++) {
    for (let row = pivot + 1; row < n; row++) {
      const factor = (matrix[row]?.[pivot] ?? 0) / (matrix[pivot]?.[pivot] ?? 1);
      const target = matrix[row];
      if (target === undefined) continue;
      for (let column = pivot; column < n; column++) {
        target[column] = (target[column] ?? 0) - factor * (matrix[pivot]?.[column] ?? 0);
      }
      right[row] = (right[row] ?? 0) - factor * (right[pivot] ?? 0);
    }
  }
  const solution = Array.from({ length: n }, () => 0);
  for (let row = n - 1; row >= 0; row--) {
    let sum = right[row] ?? 0;
    for (let column = row + 1; column < n; column++) sum -= (matrix[row]?.[column] ?? 0) * (solution[column] ?? 0);
    solution[row] = sum / (matrix[row]?.[row] ?? 1);
  }
  return solution;
}
