import { comparePaired, type PairedComparison } from "./compare.ts";
import { ALL, type ComparedGroup, type ComparedRow, type ComparedRun, type Comparison } from "./comparison.ts";
import { floorRows, humanRows, measuredRow, publishedRows, runLabels } from "./comparison-rows.ts";
import { commonAxis, costPerPrediction, onFrontier } from "./cost.ts";
import type { EvaluationItem } from "./datasets.ts";
import { floorsFor } from "./floors.ts";
import type { Reference } from "./references.ts";

export interface ComparisonSettings {
  /** Name of the run that the others are paired with; the first one unless told. */
  readonly baseline?: string | undefined;
  readonly seed: number | string;
  readonly resamples?: number | undefined;
  readonly references?: readonly Reference[] | undefined;
  /** Labelled runs of the published benchmarks in full: the floors that published numbers are held against. */
  readonly benchmark?: readonly EvaluationItem[] | undefined;
}

/**
 * Runs beside each other: per subset, and over all logs the runs that have more than one, with the floors, the published results
 * of the subset and the comparison with the baseline on the logs that both share.
 *
 * @throws RangeError without runs, or where no run has the baseline's name
 */
export function compareRuns(runs: readonly ComparedRun[], settings: ComparisonSettings): Comparison {
  const baseline = settings.baseline === undefined ? runs[0] : runs.find((run) => run.name === settings.baseline);
  if (baseline === undefined) throw new RangeError(`no run is called ${settings.baseline}`);
  const subsetsOf = (run: ComparedRun): Set<string> => new Set(run.items.map((item) => item.subset));
  const subsets = [...new Set(runs.flatMap((run) => [...subsetsOf(run)]))];
  const whole = runs.filter((run) => subsetsOf(run).size > 1);
  const groups = subsets.map((name) => compareGroup(name, runs, baseline, settings));
  if (whole.length > 0) groups.push(compareGroup(ALL, whole, baseline, settings));
  return {
    baseline: baseline.name,
    groups,
    runs: runs.map(({ name, method, model, withReference, scores, marks }) => ({
      name,
      method,
      model,
      withReference,
      counted: scores.planned - scores.missing,
      planned: scores.planned,
      epochs: scores.epochs,
      unknown: scores.unknown.count,
      superseded: scores.superseded,
      marks,
    })),
    notes: notesOf(runs, baseline),
  };
}

function compareGroup(
  name: string,
  runs: readonly ComparedRun[],
  baseline: ComparedRun,
  settings: ComparisonSettings,
): ComparedGroup {
  const inGroup = (item: EvaluationItem): boolean => name === ALL || item.subset === name;
  const measured = runs.flatMap((run) => {
    const scores = name === ALL ? run.scores : run.scores.byGroup[name];
    return scores === undefined ? [] : [{ run, scores, items: run.items.filter(inGroup) }];
  });
  // A baseline without logs here (a run on the other half) is stood in for by the first run that has some.
  const groupBaseline = measured.find(({ run }) => run === baseline)?.run ?? measured[0]?.run ?? baseline;
  const costAxis = commonAxis(measured.map(({ scores }) => scores.cost));
  const frontier = onFrontier(
    measured.map(({ scores }) => ({
      cost: costPerPrediction(scores.cost, costAxis),
      accuracy: scores.strict.step.value,
    })),
  );
  const everyItem = [
    ...new Map(measured.flatMap(({ items }) => items.map((item) => [item.id, item] as const))).values(),
  ];
  const labels = runLabels(measured.map(({ run }) => run));
  const published = (settings.references ?? []).filter((reference) => reference.subset === name);
  const benchmarkFloors = floorsFor((settings.benchmark ?? []).filter((item) => item.subset === name));
  return {
    name,
    baseline: groupBaseline.name,
    costAxis,
    rows: [
      ...measured.map(({ run, scores, items }, position) =>
        measuredRow(
          run,
          labels[position] ?? run.name,
          scores,
          items,
          measured.length > 1 && frontier[position] === true,
          pairWith(groupBaseline, run, inGroup, settings),
        ),
      ),
      ...floorRows(floorsFor(everyItem, { train: measured.find(({ run }) => run.train !== undefined)?.run.train })),
      ...(published.length === 0 ? [] : humanRows(name)),
      ...publishedRows(published, benchmarkFloors),
    ],
  };
}

function pairWith(
  baseline: ComparedRun,
  run: ComparedRun,
  inGroup: (item: EvaluationItem) => boolean,
  { seed, resamples }: ComparisonSettings,
): ComparedRow["paired"] {
  if (run === baseline) return null;
  const shared = sharedItems(run.items.filter(inGroup), baseline.items);
  const pair = (column: PairedComparison["column"]): PairedComparison | undefined =>
    comparePaired(shared, run.predictions, baseline.predictions, column, {
      seed,
      ...(resamples !== undefined && { resamples }),
    });
  const [step, agent] = [pair("step"), pair("agent")];
  return step === undefined || agent === undefined ? null : { step, agent };
}

/** Items that are the same log with the same label in both: an id alone may stand for another version of the data. */
function sharedItems(items: readonly EvaluationItem[], others: readonly EvaluationItem[]): EvaluationItem[] {
  const byId = new Map(others.map((item) => [item.id, item]));
  return items.filter((item) => {
    const other = byId.get(item.id);
    return other !== undefined && (other === item || contentOf(other) === contentOf(item));
  });
}

function contentOf({ label, trajectory }: EvaluationItem): string {
  return JSON.stringify([label.agent, label.step, trajectory.steps.map(({ agent, content }) => [agent, content])]);
}

function notesOf(runs: readonly ComparedRun[], baseline: ComparedRun): string[] {
  const otherData = runs.flatMap((run) => {
    const ids = new Set(baseline.items.map((item) => item.id));
    const common = run.items.filter((item) => ids.has(item.id));
    const differing = common.length - sharedItems(common, baseline.items).length;
    return differing === 0
      ? []
      : [`${run.name}: ${differing} logs bear the id of another log of ${baseline.name}; they are not paired`];
  });
  const partial = runs
    .filter((run) => run.scores.missing > 0)
    .map(
      (run) =>
        `${run.name}: ${run.scores.planned - run.scores.missing} of ${run.scores.planned} predictions; the rest is missing and not counted`,
    );
  const unknown = runs
    .filter((run) => run.scores.unknown.count > 0)
    .map(
      (run) =>
        `${run.name}: ${run.scores.unknown.count} predictions for ids or epochs that the run does not have (${run.scores.unknown.ids.join(", ")}); not counted`,
    );
  const superseded = runs
    .filter((run) => run.scores.superseded > 0)
    .map((run) => `${run.name}: ${run.scores.superseded} lines replaced by later ones for the same log and epoch`);
  const marked = runs.flatMap((run) => run.marks.map((mark) => `${run.name}: ${mark}`));
  return [...partial, ...unknown, ...superseded, ...marked, ...otherData];
}
