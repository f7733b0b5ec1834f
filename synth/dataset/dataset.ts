import type { Label, Trajectory } from "../../src/trajectory/schema.ts";
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

export interface Dataset {
  readonly splits: Readonly<Record<Split, readonly Trajectory[]>>;
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
  return { splits: { train: inSplit("train"), test: inSplit("test") }, evidence: evidenceOf(records, labelling) };
}

function labelled(input: PipelineInput, recording: RecordingRecord, search: SearchRecord): Trajectory[] {
  const task = input.tasks.get(recording.taskId);
  const trusted = search.verdict === "earliest-confirmed" || search.verdict === "first-flip";
  if (task === undefined || !trusted || search.step === undefined || search.agent === undefined) return [];
  const label: Label = {
    agent: search.agent,
    step: search.step,
    source: "counterfactual",
    verdict: search.verdict,
    evidenceRef: recording.id,
  };
  return [
    trajectoryOf({
      id: recording.id,
      task,
      system: input.system,
      calls: recording.tape.calls,
      outcome: recording.outcome,
      labels: [label],
      model: input.model.id,
      simulated: input.simulator !== undefined,
    }),
  ];
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
