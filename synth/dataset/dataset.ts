import type { Label, Task, Trajectory } from "../../src/trajectory/schema.ts";
import { heldOutGroups } from "../../src/trajectory/split.ts";
import type { PipelineInput, PipelineRecords } from "../pipeline/pipeline.ts";
import type { RecordingRecord, SearchRecord } from "../pipeline/records.ts";
import { trajectoryOf } from "../pipeline/trajectories.ts";
import { labelLevels } from "../search/label-levels.ts";

export const SPLITS = ["train", "test"] as const;
export type Split = (typeof SPLITS)[number];

/** One line of evidence.jsonl: why a trajectory carries its label. Kept beside the data, never in it. */
export interface Evidence {
  readonly id: string;
  readonly source: Label["source"];
  readonly [detail: string]: unknown;
}

/** Why a failed run has no label: the search's verdict, or what kept its label out. */
export type WhyUnlabelled = SearchRecord["verdict"] | "not kept by e-BH" | "search not done";

export interface Unlabelled {
  readonly trajectory: Trajectory;
  readonly why: WhyUnlabelled;
}

export interface Dataset {
  readonly splits: Readonly<Record<Split, readonly Trajectory[]>>;
  /** Failed runs that stand in no split, in the order in which they were recorded. */
  readonly unlabelled: readonly Unlabelled[];
  readonly evidence: readonly Evidence[];
}

/**
 * TracerTraj (§4.1): D⁻, failed runs whose decisive step the first strategy named, and D⁺, injected ones. Only
 * `earliest-confirmed` labels and decisive injections enter; with strategy `paper`, its first flips do.
 */
export function buildDataset(input: PipelineInput, records: PipelineRecords): Dataset {
  const labelling = input.config.search.strategies[0];
  const recordings = new Map(records.recordings.map((recording) => [recording.id, recording]));
  const levels = levelsOfStrategy(records, labelling);
  const { fdr } = input.config.search;
  const isKept = (id: string): boolean => fdr === undefined || (levels.get(id)?.fdrLevel ?? 1) <= fdr;
  const counterfactual = records.searches.flatMap((search) => {
    const recording = recordings.get(search.id);
    return search.strategy === labelling && recording !== undefined && isKept(search.id)
      ? labelled(input, recording, search)
      : [];
  });
  const injected = records.injections.flatMap((record) => (record.trajectory === undefined ? [] : [record.trajectory]));
  const all = [...counterfactual, ...injected].sort((a, b) => (a.id < b.id ? -1 : 1));
  const groups = all.map((trajectory) => trajectory.task.groupId);
  const { dataset, seed } = input.config;
  const testGroups = heldOutGroups(groups, { share: dataset.testShare, seed, name: "split", cut: "exact" });
  const inSplit = (split: Split): Trajectory[] =>
    all.filter(({ task }) => testGroups.has(task.groupId) === (split === "test"));
  return {
    splits: { train: inSplit("train"), test: inSplit("test") },
    unlabelled: unlabelledOf(input, records, new Set(counterfactual.map(({ id }) => id))),
    evidence: evidenceOf(records, labelling),
  };
}

function unlabelledOf(input: PipelineInput, records: PipelineRecords, labelled: ReadonlySet<string>): Unlabelled[] {
  const [labelling] = input.config.search.strategies;
  const verdicts = new Map(
    records.searches.filter(({ strategy }) => strategy === labelling).map(({ id, verdict }) => [id, verdict]),
  );
  return records.recordings.flatMap((recording) => {
    const task = input.tasks.get(recording.taskId);
    if (task === undefined || recording.outcome.success || labelled.has(recording.id)) return [];
    const verdict = verdicts.get(recording.id) ?? "search not done";
    return [
      { trajectory: failedRun(input, recording, task, []), why: isTrusted(verdict) ? "not kept by e-BH" : verdict },
    ];
  });
}

const isTrusted = (verdict: WhyUnlabelled): boolean => verdict === "earliest-confirmed" || verdict === "first-flip";

function failedRun(input: PipelineInput, recording: RecordingRecord, task: Task, labels: readonly Label[]): Trajectory {
  return trajectoryOf({
    id: recording.id,
    task,
    system: input.system,
    calls: recording.tape.calls,
    outcome: recording.outcome,
    labels,
    model: input.model.id,
    simulated: input.simulator !== undefined,
  });
}

function labelled(input: PipelineInput, recording: RecordingRecord, search: SearchRecord): Trajectory[] {
  const task = input.tasks.get(recording.taskId);
  if (task === undefined || !isTrusted(search.verdict) || search.step === undefined || search.agent === undefined)
    return [];
  const label: Label = {
    agent: search.agent,
    step: search.step,
    source: "counterfactual",
    verdict: search.verdict,
    evidenceRef: recording.id,
  };
  return [failedRun(input, recording, task, [label])];
}

/** The false discovery rate at which each label of a strategy would be kept, by run. */
export function levelsOfStrategy(records: PipelineRecords, strategy: string | undefined) {
  const lengths = new Map(records.recordings.map(({ id, tape }) => [id, tape.calls.length]));
  const searches = records.searches.filter((search) => search.strategy === strategy);
  return labelLevels(searches, (id) => lengths.get(id) ?? 1);
}

function evidenceOf(records: PipelineRecords, labelling: string | undefined): Evidence[] {
  const levels = levelsOfStrategy(records, labelling);
  const searches = records.searches
    .filter((search) => search.strategy === labelling)
    .map((search) => ({ ...search, ...levels.get(search.id), source: "counterfactual" as const }));
  const injections = records.injections.map(({ trajectory, ...rest }) => ({
    ...rest,
    source: "injection" as const,
    labelled: trajectory !== undefined,
  }));
  return [...searches, ...injections];
}
