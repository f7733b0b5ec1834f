import type { Dataset } from "../dataset/dataset.ts";
import type { PipelineRecords } from "./pipeline.ts";

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
    readonly liveCalls: number;
  };
  readonly dataset: { readonly train: number; readonly test: number };
  /** Units that could not be done, by stage; absent where there are none. */
  readonly dead?: Readonly<Record<string, number>>;
}

/** What a finished pipeline yielded and what it cost. */
export function reportOf(records: PipelineRecords, dataset: Dataset, strategies: readonly string[]): SynthReport {
  const truths = new Map(records.truths.map((truth) => [truth.id, truth]));
  const { injections } = records;
  return {
    runs: records.recordings.length,
    failedRuns: records.recordings.filter(({ outcome }) => !outcome.success).length,
    notReplayable: records.recordings.filter(({ notReplayable }) => notReplayable !== undefined).length,
    strategies: strategies.map((strategy) => strategyReport(records, strategy, truths)),
    injection: {
      successfulRuns: injections.length,
      admitted: injections.filter(({ admission }) => admission.admitted).length,
      labelled: injections.filter(({ trajectory }) => trajectory !== undefined).length,
      liveCalls: sum(injections.map(({ liveCalls }) => liveCalls)),
    },
    dataset: { train: dataset.splits.train.length, test: dataset.splits.test.length },
    ...(records.dead.length === 0 ? {} : { dead: counted(records.dead.map(({ stage }) => stage)) }),
  };
}

function strategyReport(
  records: PipelineRecords,
  strategy: string,
  truths: ReadonlyMap<string, { readonly step: number | null; readonly agent: string | null }>,
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
  };
}

function counted(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
