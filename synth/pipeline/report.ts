import { type Dataset, levelsOfStrategy } from "../dataset/dataset.ts";
import type { Count } from "../search/posterior.ts";
import type { AnalyzerTally } from "../search/replay-experiment.ts";
import type { RefusedProblem } from "../tasks/task-set.ts";
import { type CostReport, costReport, type UnitCost } from "./costs.ts";
import type { PipelineRecords } from "./pipeline.ts";
import type { InjectionRecord, SearchRecord } from "./records.ts";

/** A count out of n; callers put the interval to it. */
export interface Share {
  readonly hits: number;
  readonly n: number;
}

export interface StrategyReport {
  readonly strategy: string;
  readonly failedRuns: number;
  readonly verdicts: Readonly<Record<string, number>>;
  /** Runs that got a label a dataset would take. */
  readonly labelled: Share;
  /** Of those labels, how many name the simulator's true step, and agent; absent where the truth is not known. */
  readonly stepAccuracy?: Share;
  readonly agentAccuracy?: Share;
  readonly liveCalls: number;
  /** What the analyzer's proposals came to; `confirmed`: corrections whose effect was confirmed by reruns. */
  readonly analyzer?: AnalyzerReport;
  /** Reruns at labelled steps: with the correction, as recorded, rephrased, and with the answer given away. */
  readonly controls?: Readonly<Record<"treated" | "control" | "placebo" | "hint", Share>>;
  /** Labels that e-BH keeps at that false discovery rate. */
  readonly fdr?: { readonly level: number; readonly kept: Share };
}

export interface AnalyzerReport extends AnalyzerTally {
  readonly asked: number;
  readonly confirmed: number;
  /** Mean share of a step's tokens that its correction changes. */
  readonly meanEditShare: number | null;
}

export interface SynthReport {
  readonly runs: number;
  readonly failedRuns: number;
  readonly notReplayable: number;
  readonly strategies: readonly StrategyReport[];
  readonly injection: {
    readonly successfulRuns: number;
    readonly admitted: number;
    readonly labelled: number;
    /** Labels by the operator that made the fault, of the points at which it was tried. */
    readonly operators: Readonly<Record<string, Share>>;
    readonly liveCalls: number;
  };
  readonly dataset: { readonly train: number; readonly test: number };
  /** Failed runs that got no label, by why not; they are in `unlabelled.jsonl`. */
  readonly unlabelled: Readonly<Record<string, number>>;
  /** What the finished units have cost, and a label. */
  readonly cost: CostReport;
  /** Problems left out because they cannot be checked here, by why; absent where there are none. */
  readonly refused?: Readonly<Record<string, number>>;
  /** Units that could not be done, by stage; absent where there are none. */
  readonly dead?: Readonly<Record<string, number>>;
}

/** What a finished pipeline yielded and what it cost. */
export function reportOf(
  records: PipelineRecords,
  dataset: Dataset,
  { strategies, fdr }: { readonly strategies: readonly string[]; readonly fdr?: number },
  costs: readonly UnitCost[],
  refused: readonly RefusedProblem[] = [],
): SynthReport {
  const truths = new Map(records.truths.map((truth) => [truth.id, truth]));
  const { injections } = records;
  return {
    runs: records.recordings.length,
    failedRuns: records.recordings.filter(({ outcome }) => !outcome.success).length,
    notReplayable: records.recordings.filter(({ notReplayable }) => notReplayable !== undefined).length,
    strategies: strategies.map((strategy) => strategyReport(records, strategy, truths, fdr)),
    injection: {
      successfulRuns: injections.length,
      admitted: injections.filter(({ admission }) => admission.admitted).length,
      labelled: injections.filter(({ trajectory }) => trajectory !== undefined).length,
      operators: labelsByOperator(injections),
      liveCalls: sum(injections.map(({ liveCalls }) => liveCalls)),
    },
    dataset: { train: dataset.splits.train.length, test: dataset.splits.test.length },
    unlabelled: counted(dataset.unlabelled.map(({ why }) => why)),
    cost: costReport(costs, strategies, strategies[0], dataset.splits.train.length + dataset.splits.test.length),
    ...(refused.length === 0 ? {} : { refused: counted(refused.map(({ why }) => why)) }),
    ...(records.dead.length === 0 ? {} : { dead: counted(records.dead.map(({ stage }) => stage)) }),
  };
}

/** How often each operator was tried at a point, and how often that gave the label; in the order of their names. */
export function labelsByOperator(injections: readonly InjectionRecord[]): Record<string, Share> {
  const points = injections.flatMap((record) => record.points);
  const names = [...new Set(points.flatMap(({ operator }) => operator ?? []))].sort();
  return Object.fromEntries(
    names.map((name) => {
      const own = points.filter(({ operator }) => operator === name);
      return [name, { hits: own.filter(({ decision }) => decision === "decisive").length, n: own.length }];
    }),
  );
}

function strategyReport(
  records: PipelineRecords,
  strategy: string,
  truths: ReadonlyMap<string, { readonly step: number | null; readonly agent: string | null }>,
  fdr: number | undefined,
): StrategyReport {
  const searches = records.searches.filter((search) => search.strategy === strategy);
  const labelled = searches.filter(({ verdict }) => verdict === "earliest-confirmed" || verdict === "first-flip");
  const agreeing = (field: "step" | "agent"): Share => ({
    hits: labelled.filter((search) => search[field] === truths.get(search.id)?.[field]).length,
    n: labelled.length,
  });
  return {
    strategy,
    failedRuns: searches.length,
    verdicts: counted(searches.map(({ verdict }) => verdict)),
    labelled: { hits: labelled.length, n: searches.length },
    ...(truths.size === 0 ? {} : { stepAccuracy: agreeing("step"), agentAccuracy: agreeing("agent") }),
    liveCalls: sum(searches.map(({ liveCalls }) => liveCalls)),
    ...analyzerReport(searches),
    ...controlsReport(searches),
    ...(fdr === undefined ? {} : { fdr: { level: fdr, kept: keptAt(fdr, records, strategy, labelled) } }),
  };
}

function analyzerReport(searches: readonly SearchRecord[]): { readonly analyzer?: AnalyzerReport } {
  const tallies = searches.flatMap(({ analyzer }) => (analyzer === undefined ? [] : [analyzer]));
  if (tallies.length === 0) return {};
  const total = (of: (tally: AnalyzerTally) => number): number => sum(tallies.map(of));
  const counts = {
    usable: total(({ usable }) => usable),
    nonsense: total(({ nonsense }) => nonsense),
    refused: total(({ refused }) => refused),
    leaked: total(({ leaked }) => leaked),
    rewritten: total(({ rewritten }) => rewritten),
  };
  const shares = searches.flatMap(({ corrections }) => corrections.flatMap(({ editShare }) => editShare ?? []));
  return {
    analyzer: {
      asked: sum(Object.values(counts)),
      ...counts,
      steps: total(({ steps }) => steps),
      corrected: total(({ corrected }) => corrected),
      confirmed: sum(searches.map(({ evidence }) => evidence.filter(({ decision }) => decision === "effect").length)),
      meanEditShare: shares.length === 0 ? null : sum(shares) / shares.length,
    },
  };
}

function controlsReport(searches: readonly SearchRecord[]): Pick<StrategyReport, "controls"> {
  const controlled = searches.filter(({ controls }) => controls !== undefined);
  if (controlled.length === 0) return {};
  const share = (of: (search: SearchRecord) => Count | undefined): Share => {
    const counts = controlled.flatMap((search) => of(search) ?? []);
    return { hits: sum(counts.map(({ successes }) => successes)), n: sum(counts.map(({ runs }) => runs)) };
  };
  const named = (search: SearchRecord) => search.evidence.find(({ step }) => step === search.controls?.step);
  return {
    controls: {
      treated: share((search) => named(search)?.treated),
      control: share((search) => named(search)?.control),
      placebo: share(({ controls }) => controls?.placebo),
      hint: share(({ controls }) => controls?.hint),
    },
  };
}

function keptAt(fdr: number, records: PipelineRecords, strategy: string, labelled: readonly SearchRecord[]): Share {
  const levels = levelsOfStrategy(records, strategy);
  return { hits: labelled.filter(({ id }) => (levels.get(id)?.fdrLevel ?? 1) <= fdr).length, n: labelled.length };
}

/** How often each name occurs, in the order of first occurrence. */
export function counted(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
