import type { PairedComparison } from "./compare.ts";
import type { Cost, CostAxis } from "./cost.ts";
import type { EvaluationItem } from "./datasets.ts";
import type { Floor, Tolerance } from "./floor.ts";
import type { Prediction } from "./prediction.ts";
import type { Scores } from "./score.ts";

/** The columns of a comparison, in the order they are printed. */
export const COMPARED = [
  { id: "step", title: "step", column: "step", tolerance: 0 },
  { id: "agent", title: "agent", column: "agent", tolerance: 0 },
  { id: "both", title: "both", column: null, tolerance: 0 },
  { id: "lateStep", title: "late: step", column: null, tolerance: 0 },
  { id: "lateAgent", title: "late: agent", column: null, tolerance: 0 },
  { id: "parseFailures", title: "parse failures", column: null, tolerance: 0 },
  { id: "noStepNamed", title: "no step named", column: null, tolerance: 0 },
  { id: "within1", title: "step ±1", column: "step", tolerance: 1 },
  { id: "within2", title: "step ±2", column: "step", tolerance: 2 },
  { id: "within3", title: "step ±3", column: "step", tolerance: 3 },
  { id: "compatStep", title: "official-compat: step", column: null, tolerance: 0 },
  { id: "compatAgent", title: "official-compat: agent", column: null, tolerance: 0 },
  { id: "compatBoth", title: "official-compat: both", column: null, tolerance: 0 },
] as const satisfies readonly {
  readonly id: string;
  readonly title: string;
  /** What the floors and references of the column are called; null where it has none. */
  readonly column: Floor["column"] | null;
  readonly tolerance: Tolerance;
}[];
export type ComparedId = (typeof COMPARED)[number]["id"];

/** A run to compare. */
export interface ComparedRun {
  readonly name: string;
  readonly method: string;
  readonly model: string | null;
  readonly withReference: boolean;
  readonly items: readonly EvaluationItem[];
  readonly predictions: readonly Prediction[];
  readonly scores: Scores;
  /** Labelled runs to learn layout floors from. */
  readonly train?: readonly EvaluationItem[] | undefined;
  /** What a reader has to know: other data, an edited file. */
  readonly marks: readonly string[];
}

/** A share, fractions of 1. */
export interface ComparedCell {
  readonly value: number | null;
  /** 95%; null where there is none (floors are exact, sources print none). */
  readonly low: number | null;
  readonly high: number | null;
  readonly interval: "wilson" | "clustered" | null;
  readonly n: number;
  /** The floor of the column that the value does not reach. */
  readonly belowFloor: string | null;
}

export interface ComparedRow {
  /** `published` rows come from papers, and `floor` rows from the labels alone; neither was measured by a run. */
  readonly kind: "measured" | "floor" | "published";
  readonly name: string;
  /** Method, model and setting where that tells the group's runs apart, else the name. */
  readonly label: string;
  readonly method: string | null;
  readonly model: string | null;
  /** Whether the reference answer G was in the prompt. */
  readonly reference: "with" | "without" | "unstated" | null;
  readonly cells: Readonly<Partial<Record<ComparedId, ComparedCell>>>;
  /** Predictions counted, of how many. Null for rows that are no runs. */
  readonly counted: number | null;
  readonly planned: number | null;
  readonly cost: Cost | null;
  /** On the cost–accuracy frontier of its group, where that has several runs; null for rows that are no runs. */
  readonly frontier: boolean | null;
  /** Against the baseline; null for the baseline itself, for other rows, and where nothing is shared. */
  readonly paired: { readonly step: PairedComparison; readonly agent: PairedComparison } | null;
  /** Of floor rows: false for oracles and for floors of our own, which are no bar. */
  readonly isBar: boolean | null;
  /** Of published rows. */
  readonly source: string | null;
  /** False where a published value comes from a later overview, not from its source's own table. */
  readonly seenInSource: boolean | null;
  readonly detail: string;
}

export interface ComparedGroup {
  readonly name: string;
  /** The run that the group's others are paired with. */
  readonly baseline: string;
  readonly rows: readonly ComparedRow[];
  /** What costs are compared by: known for every run of the group. */
  readonly costAxis: CostAxis;
}

export interface Comparison {
  readonly baseline: string;
  readonly groups: readonly ComparedGroup[];
  readonly runs: readonly {
    readonly name: string;
    readonly method: string;
    readonly model: string | null;
    readonly withReference: boolean;
    readonly counted: number;
    readonly planned: number;
    readonly epochs: number;
    readonly unknown: number;
    readonly superseded: number;
    readonly marks: readonly string[];
  }[];
  readonly notes: readonly string[];
}

/** Group over everything, of the runs that cover several subsets. */
export const ALL = "all logs";

/** How an axis is called where it is printed. */
export const AXIS_TITLES: Readonly<Record<CostAxis, string>> = {
  money: "money per log",
  tokens: "tokens per log",
  calls: "calls per log",
};
