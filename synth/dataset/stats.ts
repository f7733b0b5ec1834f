import { isRecord } from "../../src/is-record.ts";
import { normalizeAgent } from "../../src/trajectory/agent-name.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { FAILURE_FEATURES, type LabelledFailure, labelledFailure, sampleOf } from "./failure-features.ts";
import { auc, type TwoSampleResult, twoSampleAuc } from "./two-sample.ts";

/** Records read from a file or folder. */
export interface StatsInput {
  readonly name: string;
  readonly trajectories: readonly Trajectory[];
  /** Characters that the correction of the decisive step changes, by run; from the evidence of a dataset. */
  readonly editSizes: ReadonlyMap<string, number>;
  /** Records that could not be read. */
  readonly badRecords: number;
}

/** Quantiles of type 7, as R and numpy have them. */
export interface Spread {
  readonly n: number;
  readonly mean: number;
  readonly least: number;
  readonly q25: number;
  readonly median: number;
  readonly q75: number;
  readonly most: number;
}

export type Counts = Readonly<Record<string, number>>;

export interface DataStats {
  readonly name: string;
  readonly records: number;
  readonly badRecords: number;
  readonly failed: number;
  /** Failed runs with a label inside their log: what everything below the counts is about. */
  readonly labelledFailures: number;
  readonly simulated: number;
  readonly taskGroups: number;
  readonly systems: Counts;
  readonly tasks: Counts;
  /** By source and verdict of the first label: `counterfactual earliest-confirmed`. */
  readonly labels: Counts;
  /** By normalised name. */
  readonly blamedAgents: Counts;
  /** Where a label or record names one. */
  readonly symptoms: Counts;
  readonly features: Readonly<Record<string, Spread | null>>;
  readonly editSize: Spread | null;
}

export function dataStats(input: StatsInput): DataStats {
  const { trajectories, editSizes } = input;
  const failures = failuresOf(input);
  return {
    name: input.name,
    records: trajectories.length,
    badRecords: input.badRecords,
    failed: trajectories.filter(({ outcome }) => !outcome.success).length,
    labelledFailures: failures.length,
    simulated: trajectories.filter(({ provenance }) => provenance.simulated).length,
    taskGroups: new Set(trajectories.map(({ task }) => task.groupId)).size,
    systems: counted(trajectories.map(({ system }) => system)),
    tasks: counted(trajectories.map(({ task }) => task.source)),
    labels: counted(
      trajectories.map(({ labels: [label] }) =>
        label === undefined ? "none" : [label.source, label.verdict].filter((part) => part !== undefined).join(" "),
      ),
    ),
    blamedAgents: counted(failures.map(({ label }) => normalizeAgent(label.agent))),
    symptoms: counted(failures.flatMap(symptomsOf)),
    features: Object.fromEntries(FAILURE_FEATURES.map((feature) => [feature.id, spread(failures.map(feature.of))])),
    editSize: spread(failures.flatMap(({ trajectory }) => editSizes.get(trajectory.id) ?? [])),
  };
}

export interface DataComparison {
  readonly first: DataStats;
  readonly second: DataStats;
  /** P(a failure of the second set has the larger value) + ½ P(equal), by feature; null where a set has no failure. */
  readonly featureAuc: Readonly<Record<string, number | null>>;
  readonly editSizeAuc: number | null;
  /** Of all features at once; null where a set has fewer than two task groups. */
  readonly classifier: TwoSampleResult | null;
}

/** How failures of two sets differ, by each feature and by a classifier on all of them. */
export function compareData(first: StatsInput, second: StatsInput, seed: number): DataComparison {
  const [a, b] = [failuresOf(first), failuresOf(second)];
  const between = (low: readonly number[], high: readonly number[]): number | null =>
    low.length === 0 || high.length === 0 ? null : auc(low, high);
  const edits = ({ editSizes }: StatsInput, failures: readonly LabelledFailure[]): number[] =>
    failures.flatMap(({ trajectory }) => editSizes.get(trajectory.id) ?? []);
  return {
    first: dataStats(first),
    second: dataStats(second),
    featureAuc: Object.fromEntries(
      FAILURE_FEATURES.map((feature) => [feature.id, between(a.map(feature.of), b.map(feature.of))]),
    ),
    editSizeAuc: between(edits(first, a), edits(second, b)),
    classifier: twoSampleAuc(a.map(sampleOf), b.map(sampleOf), seed) ?? null,
  };
}

function failuresOf({ trajectories }: StatsInput): LabelledFailure[] {
  return trajectories.flatMap((trajectory) => labelledFailure(trajectory) ?? []);
}

/** A label's own class, else the classes that a record lists (`extra.failures[].failure_category`, as AgentRx does). */
function symptomsOf({ trajectory, label }: LabelledFailure): string[] {
  const own = [label.extra?.symptom, label.extra?.category].filter((name) => typeof name === "string");
  if (own.length > 0) return own;
  const listed = trajectory.extra?.failures;
  if (!Array.isArray(listed)) return [];
  return listed.flatMap((failure: unknown) =>
    isRecord(failure) && typeof failure.failure_category === "string" ? [failure.failure_category] : [],
  );
}

function counted(names: readonly string[]): Counts {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)));
}

function spread(values: readonly number[]): Spread | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const at = (q: number): number => {
    const place = q * (sorted.length - 1);
    const low = sorted[Math.floor(place)] ?? Number.NaN;
    return low + ((sorted[Math.ceil(place)] ?? low) - low) * (place - Math.floor(place));
  };
  return {
    n: values.length,
    mean: values.reduce((sum, value) => sum + value, 0) / values.length,
    least: at(0),
    q25: at(0.25),
    median: at(0.5),
    q75: at(0.75),
    most: at(1),
  };
}
