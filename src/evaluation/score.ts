import type { Prices } from "../models/budget.ts";
import { type BootstrapSettings, clusteredMeans, DEFAULT_RESAMPLES } from "./bootstrap.ts";
import { type Cost, costOf } from "./cost.ts";
import type { EvaluationItem } from "./datasets.ts";
import { HIT_COLUMNS, type Hits, hitScorer, MEASURES, NO_STEP_NAMED, PARSE_FAILED } from "./hits.ts";
import type { Prediction } from "./prediction.ts";
import { LATE_STEP } from "./scorers.ts";
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
  /** Logs × epochs that a complete run has here; cells count what is there. */
  readonly planned: number;
  readonly strict: StrictCells;
  readonly officialCompat: CompatCells;
  /** Outputs that could not be read in full; counted as wrong. */
  readonly parseFailures: Cell;
  /** Runs in which every answer was read and none named a step (step-by-step, hybrid); counted as wrong. */
  readonly noStepNamed: Cell;
  /** Failed model calls by code; counted as wrong. */
  readonly errors: Readonly<Record<string, number>>;
  readonly cost: Cost;
}

export interface Scores extends GroupScores {
  readonly epochs: number;
  /** Predictions that are not there (an unfinished run, lines taken out); not counted anywhere. */
  readonly missing: number;
  /** Predictions for ids that are no items, or for epochs that the run does not have; not counted anywhere. */
  readonly unknown: { readonly count: number; readonly ids: readonly string[] };
  /** Lines that a later line for the same log and epoch replaces: the later one counts. */
  readonly superseded: number;
  readonly byGroup: Readonly<Record<string, GroupScores>>;
  readonly parsePaths: Readonly<Record<string, number>>;
  readonly parseFailureReasons: Readonly<Record<string, number>>;
  /** Predictions whose log was cut to fit. */
  readonly cut: number;
}

export interface ScoreSettings {
  /** Seed of the bootstrap. */
  readonly seed?: number | string | undefined;
  readonly resamples?: number | undefined;
  /** Columns of the table; an item's subset unless told. */
  readonly groupBy?: ((item: EvaluationItem) => string) | undefined;
  /** Repetitions that the run has per log; unless told, as many as the predictions show. */
  readonly epochs?: number | undefined;
  /** Per million tokens; without them the cost in money is not known. */
  readonly prices?: Prices | undefined;
}

/** What was predicted about one item. */
interface Scored {
  readonly item: EvaluationItem;
  readonly predictions: Prediction[];
  /** The item's question, and sums over its predictions in the columns of `Hits`: what the bootstrap resamples. */
  readonly cluster: string;
  readonly values: number[];
  count: number;
}

/** How many unknown ids are named. */
const NAMED_IDS = 10;

/**
 * Scores predictions against the labels of their items; no model is asked. Of several lines for one log and epoch the last
 * counts. Lines for other items or epochs are counted apart and nowhere else.
 */
export function scorePredictions(
  items: readonly EvaluationItem[],
  predictions: readonly Prediction[],
  settings: ScoreSettings = {},
): Scores {
  const byId = new Map(items.map((item) => [item.id, nothingYet(item)]));
  const score = hitScorer();
  const strangers: Prediction[] = [];
  let latest = 0;
  let mostEpochs = 1;
  for (const [epoch, byItem] of latestByEpoch(predictions)) {
    latest += byItem.size;
    for (const prediction of byItem.values()) {
      const known = byId.get(prediction.itemId);
      if (known === undefined || epoch >= (settings.epochs ?? Number.POSITIVE_INFINITY)) strangers.push(prediction);
      else {
        add(known, prediction, score(known.item.label, prediction));
        mostEpochs = Math.max(mostEpochs, epoch + 1);
      }
    }
  }
  const epochs = settings.epochs ?? mostEpochs;
  const scored = [...byId.values()].filter(({ count }) => count > 0);
  const groupBy = settings.groupBy ?? ((item: EvaluationItem) => item.subset);
  const bootstrap = { seed: settings.seed ?? 0, resamples: settings.resamples ?? DEFAULT_RESAMPLES };
  const scoresOf = (those: readonly Scored[], of: readonly EvaluationItem[]): GroupScores =>
    groupScores(those, of.length * epochs, epochs, bootstrap, settings.prices);
  const groups = new Map<string, { items: EvaluationItem[]; scored: Scored[] }>();
  for (const item of items) {
    const name = groupBy(item);
    const group = groups.get(name) ?? { items: [], scored: [] };
    group.items.push(item);
    groups.set(name, group);
  }
  for (const one of scored) groups.get(groupBy(one.item))?.scored.push(one);
  const made = scored.flatMap((one) => one.predictions);
  return {
    ...scoresOf(scored, items),
    epochs,
    missing: items.length * epochs - made.length,
    unknown: {
      count: strangers.length,
      ids: [...new Set(strangers.map((stranger) => stranger.itemId))].sort().slice(0, NAMED_IDS),
    },
    superseded: predictions.length - latest,
    byGroup: Object.fromEntries([...groups].map(([name, group]) => [name, scoresOf(group.scored, group.items)])),
    parsePaths: countBy(made, (p) => p.parsePath),
    parseFailureReasons: countBy(made, (p) => p.parseFailure),
    cut: made.filter((p) => p.cut !== undefined).length,
  };
}

const nothingYet = (item: EvaluationItem): Scored => ({
  item,
  predictions: [],
  cluster: item.groupId,
  values: Array.from({ length: HIT_COLUMNS }, () => 0),
  count: 0,
});

function add(to: Scored, prediction: Prediction, hits: Hits): void {
  to.predictions.push(prediction);
  to.count++;
  for (let c = 0; c < hits.length; c++) to.values[c] = (to.values[c] ?? 0) + (hits[c] ?? 0);
}

/** By epoch and item; maps in maps, because joining each pair into a key takes longer than all else here. */
function latestByEpoch(predictions: readonly Prediction[]): Map<number, Map<string, Prediction>> {
  const latest = new Map<number, Map<string, Prediction>>();
  for (const prediction of predictions) {
    const byItem = latest.get(prediction.epoch) ?? new Map<string, Prediction>();
    latest.set(prediction.epoch, byItem.set(prediction.itemId, prediction));
  }
  return latest;
}

function groupScores(
  scored: readonly Scored[],
  planned: number,
  epochs: number,
  bootstrap: BootstrapSettings,
  prices: Prices | undefined,
): GroupScores {
  const made = scored.flatMap((one) => one.predictions);
  const late = scored.filter(({ item }) => item.label.step >= LATE_STEP);
  const all = cells(scored, HIT_COLUMNS, epochs, bootstrap);
  // Step and agent, the first two columns.
  const lateCells = cells(late, 2, epochs, bootstrap);
  const named = (name: (typeof MEASURES)[number]): Cell => all[MEASURES.indexOf(name)] ?? NOTHING;
  return {
    items: scored.length,
    planned,
    strict: {
      agent: named("agent"),
      step: named("step"),
      both: named("both"),
      within1: named("within1"),
      within2: named("within2"),
      within3: named("within3"),
      lateStep: lateCells[MEASURES.indexOf("step")] ?? NOTHING,
      lateAgent: lateCells[MEASURES.indexOf("agent")] ?? NOTHING,
    },
    officialCompat: { agent: named("compatAgent"), step: named("compatStep"), both: named("compatBoth") },
    parseFailures: all[PARSE_FAILED] ?? NOTHING,
    noStepNamed: all[NO_STEP_NAMED] ?? NOTHING,
    errors: countBy(made, (prediction) => prediction.error?.code),
    cost: costOf(made, prices),
  };
}

const NOTHING: Cell = { hits: 0, n: 0, value: null, wilson: null, clustered: null };

/** A cell for each of the first so many columns of `Hits`, over the same predictions. */
function cells(scored: readonly Scored[], columns: number, epochs: number, bootstrap: BootstrapSettings): Cell[] {
  const n = scored.reduce((total, { count }) => total + count, 0);
  if (n === 0) return Array.from({ length: columns }, () => NOTHING);
  const hits = Array.from({ length: columns }, () => 0);
  for (const { values } of scored) {
    for (let c = 0; c < columns; c++) hits[c] = (hits[c] ?? 0) + (values[c] ?? 0);
  }
  if (epochs === 1) {
    return hits.map((sum) => ({ hits: sum, n, value: sum / n, wilson: wilsonInterval(sum, n), clustered: null }));
  }
  const intervals = clusteredMeans(scored, columns, bootstrap).map(({ interval }) => interval);
  return hits.map((sum, c) => ({ hits: sum, n, value: sum / n, wilson: null, clustered: intervals[c] ?? null }));
}

function countBy<T>(values: readonly T[], key: (value: T) => string | undefined): Record<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) {
    const name = key(value);
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}
