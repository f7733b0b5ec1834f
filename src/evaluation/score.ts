import { clusteredMean, DEFAULT_RESAMPLES } from "./bootstrap.ts";
import type { EvaluationItem } from "./datasets.ts";
import { type Prediction, predictionKey } from "./prediction.ts";
import { LATE_STEP, officialCompat, type Scorer, strict, withinSteps } from "./scorers.ts";
import { type Interval, wilsonInterval } from "./statistics.ts";

/** A share with everything one needs to read it. */
export interface Cell {
  readonly hits: number;
  /** Predictions counted: logs × epochs. */
  readonly n: number;
  /** hits / n, in [0, 1]; null where n is 0. */
  readonly value: number | null;
  /** Wilson 95%; null with several epochs, whose predictions are not independent. */
  readonly wilson: Interval | null;
  /** Bootstrap 95% clustered by question; null with a single epoch. */
  readonly clustered: Interval | null;
}

export interface StrictCells {
  readonly agent: Cell;
  readonly step: Cell;
  readonly both: Cell;
  readonly within1: Cell;
  readonly within2: Cell;
  readonly within3: Cell;
  /** Step and agent where the label is step 5 or later. */
  readonly lateStep: Cell;
  readonly lateAgent: Cell;
}

export interface CompatCells {
  readonly agent: Cell;
  readonly step: Cell;
  readonly both: Cell;
}

export interface GroupScores {
  readonly items: number;
  readonly strict: StrictCells;
  readonly officialCompat: CompatCells;
  /** Outputs that could not be read in full; counted as wrong. */
  readonly parseFailures: Cell;
  /** Failed model calls by code; counted as wrong. */
  readonly errors: Readonly<Record<string, number>>;
}

export interface Scores extends GroupScores {
  readonly epochs: number;
  /** Predictions that are not there (an unfinished run); not counted anywhere. */
  readonly missing: number;
  readonly byGroup: Readonly<Record<string, GroupScores>>;
  readonly parsePaths: Readonly<Record<string, number>>;
  readonly parseFailureReasons: Readonly<Record<string, number>>;
  readonly cost: {
    readonly calls: number;
    readonly promptTokens: number;
    readonly completionTokens: number;
    /** Predictions with calls whose server reported no usage: the token sums lack them. */
    readonly withoutUsage: number;
    readonly seconds: number;
  };
  /** Predictions whose log was cut to fit. */
  readonly cut: number;
}

export interface ScoreSettings {
  /** Seed of the bootstrap. */
  readonly seed?: number | string | undefined;
  readonly resamples?: number | undefined;
  /** Columns of the table; an item's subset unless told. */
  readonly groupBy?: ((item: EvaluationItem) => string) | undefined;
}

interface Pair {
  readonly item: EvaluationItem;
  readonly prediction: Prediction;
}

/** Scores predictions against the labels of their items; no model is asked. Predictions of other items are left out. */
export function scorePredictions(
  items: readonly EvaluationItem[],
  predictions: readonly Prediction[],
  settings: ScoreSettings = {},
): Scores {
  const byId = new Map(items.map((item) => [item.id, item]));
  const latest = new Map(predictions.map((prediction) => [predictionKey(prediction), prediction]));
  const pairs = [...latest.values()].flatMap((prediction): Pair[] => {
    const item = byId.get(prediction.itemId);
    return item === undefined ? [] : [{ item, prediction }];
  });
  const epochs = 1 + Math.max(0, ...pairs.map((pair) => pair.prediction.epoch));
  const cell = cellMaker(epochs, settings);
  const groupBy = settings.groupBy ?? ((item: EvaluationItem) => item.subset);
  const groups = [...new Set(items.map(groupBy))];
  const made = pairs.map((pair) => pair.prediction);
  const sum = (of: (prediction: Prediction) => number): number => made.reduce((total, p) => total + of(p), 0);
  return {
    ...groupScores(pairs, cell),
    epochs,
    missing: items.length * epochs - pairs.length,
    byGroup: Object.fromEntries(
      groups.map((group) => [
        group,
        groupScores(
          pairs.filter((pair) => groupBy(pair.item) === group),
          cell,
        ),
      ]),
    ),
    parsePaths: countBy(made, (p) => p.parsePath),
    parseFailureReasons: countBy(made, (p) => p.parseFailure),
    cost: {
      calls: sum((p) => p.calls),
      promptTokens: sum((p) => p.usage?.promptTokens ?? 0),
      completionTokens: sum((p) => p.usage?.completionTokens ?? 0),
      withoutUsage: made.filter((p) => p.calls > 0 && p.usage === undefined).length,
      seconds: sum((p) => p.latencyMs) / 1000,
    },
    cut: made.filter((p) => p.cut !== undefined).length,
  };
}

type CellMaker = (pairs: readonly Pair[], hit: (pair: Pair) => boolean) => Cell;

function cellMaker(epochs: number, settings: ScoreSettings): CellMaker {
  return (pairs, hit) => {
    const n = pairs.length;
    const hits = pairs.filter(hit).length;
    if (n === 0) return { hits, n, value: null, wilson: null, clustered: null };
    if (epochs === 1) return { hits, n, value: hits / n, wilson: wilsonInterval(hits, n), clustered: null };
    const values = pairs.map((pair) => ({ value: hit(pair) ? 1 : 0, cluster: pair.item.groupId }));
    const { interval } = clusteredMean(values, {
      seed: settings.seed ?? 0,
      resamples: settings.resamples ?? DEFAULT_RESAMPLES,
    });
    return { hits, n, value: hits / n, wilson: null, clustered: interval };
  };
}

function groupScores(pairs: readonly Pair[], cell: CellMaker): GroupScores {
  const late = pairs.filter((pair) => pair.item.label.step >= LATE_STEP);
  const near = (tolerance: number): Cell =>
    cell(pairs, (pair) => withinSteps(pair.prediction, pair.item.label, tolerance));
  return {
    items: new Set(pairs.map((pair) => pair.item.id)).size,
    strict: {
      ...scorerCells(pairs, strict, cell),
      within1: near(1),
      within2: near(2),
      within3: near(3),
      lateStep: cell(late, (pair) => strict.step(pair.prediction, pair.item.label)),
      lateAgent: cell(late, (pair) => strict.agent(pair.prediction, pair.item.label)),
    },
    officialCompat: scorerCells(pairs, officialCompat, cell),
    parseFailures: cell(pairs, (pair) => pair.prediction.parseFailure !== undefined),
    errors: countBy(
      pairs.map((pair) => pair.prediction),
      (prediction) => prediction.error?.code,
    ),
  };
}

function scorerCells(pairs: readonly Pair[], scorer: Scorer, cell: CellMaker): CompatCells {
  return {
    agent: cell(pairs, (pair) => scorer.agent(pair.prediction, pair.item.label)),
    step: cell(pairs, (pair) => scorer.step(pair.prediction, pair.item.label)),
    both: cell(
      pairs,
      (pair) => scorer.agent(pair.prediction, pair.item.label) && scorer.step(pair.prediction, pair.item.label),
    ),
  };
}

function countBy<T>(values: readonly T[], key: (value: T) => string | undefined): Record<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) {
    const name = key(value);
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}
