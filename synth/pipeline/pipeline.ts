import pLimit from "p-limit";
import type { z } from "zod";
import { isError, RootstepError } from "../../src/errors.ts";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { throwIfInterrupted } from "../../src/runs/interrupt.ts";
import type { Journal } from "../../src/runs/journal.ts";
import type { Progress } from "../../src/runs/progress.ts";
import type { RunFolder } from "../../src/runs/run-folder.ts";
import type { Task } from "../../src/trajectory/schema.ts";
import { injectFault } from "../inject/inject.ts";
import { injectionOperatorById } from "../inject/registry.ts";
import { identityFault, recordRun, type Setting, seededModel } from "../replay.ts";
import { searchStrategyById } from "../search/registry.ts";
import { createReplayExperiment } from "../search/replay-experiment.ts";
import { knowledgeOf } from "../simulator/knowledge.ts";
import type { SimulatorConfig } from "../simulator/simulator.ts";
import { stepsInError, trueDecisiveStep } from "../simulator/truth.ts";
import type { AgentSystem } from "../systems/system.ts";
import type { TaskSet } from "../tasks/task-set.ts";
import type { SynthConfig } from "./config.ts";
import {
  type InjectionRecord,
  injectionRecordSchema,
  type RecordingRecord,
  recordingSchema,
  type SearchRecord,
  searchRecordSchema,
  type TruthRecord,
  truthRecordSchema,
} from "./records.ts";
import { trajectoryOf } from "./trajectories.ts";

export interface PipelineInput {
  readonly config: SynthConfig;
  readonly folder: RunFolder;
  readonly system: AgentSystem;
  readonly taskSet: TaskSet;
  /** By task id, in the order in which they are worked on. */
  readonly tasks: ReadonlyMap<string, Task>;
  /** Plays the agents. Behind it stand budget, limiter and cache. */
  readonly model: ChatModel;
  readonly analyzer: ChatModel;
  /** Present where the model is the simulator: then its truth is written beside the labels. */
  readonly simulator: SimulatorConfig | undefined;
  readonly progress: Progress;
  readonly signal?: AbortSignal;
}

export interface PipelineRecords {
  readonly recordings: readonly RecordingRecord[];
  readonly searches: readonly SearchRecord[];
  readonly injections: readonly InjectionRecord[];
  readonly truths: readonly TruthRecord[];
}

/**
 * Record → search for t* in the failed runs → inject faults into the successful ones. Each finished unit is one line of a
 * journal; a unit's result depends on its id and the seed alone, so a run that was killed goes on where it stopped and
 * ends with the same records.
 *
 * @throws RootstepError INTERRUPTED, BUDGET_REACHED (everything finished before is in the journals), MODEL_*
 */
export async function runPipeline(input: PipelineInput): Promise<PipelineRecords> {
  const recordings = await recordStage(input);
  const failed = recordings.filter((recording) => !recording.outcome.success);
  const searches = await searchStage(input, failed);
  const truths = input.simulator === undefined ? [] : await truthStage(input, input.simulator, failed);
  const injections = input.config.inject.operator === "none" ? [] : await injectStage(input, recordings);
  return { recordings, searches, injections, truths };
}

/** Does every unit that the journal lacks and returns all records in the order of the units, whatever finished first. */
async function stage<U, R>(
  input: PipelineInput,
  name: string,
  journal: Journal<R>,
  units: readonly U[],
  keyOfUnit: (unit: U) => string,
  keyOfRecord: (record: R) => string,
  work: (unit: U) => Promise<R>,
): Promise<R[]> {
  const done = new Map(journal.existing.map((record) => [keyOfRecord(record), record]));
  const bar = input.progress.stage(name, units.length, done.size);
  const limiter = pLimit(input.config.concurrency);
  let stopped = false;
  const recordOf = async (unit: U): Promise<R> => {
    const known = done.get(keyOfUnit(unit));
    if (known !== undefined) return known;
    await new Promise(setImmediate); // lets signals and timers in between units that never wait
    throwIfInterrupted(input.signal);
    if (stopped) throw new RootstepError("INTERRUPTED", { what: "another unit of this stage failed" });
    const record = await work(unit);
    journal.append(record);
    bar.advance();
    return record;
  };
  const settled = await Promise.allSettled(
    units.map((unit) =>
      limiter(() =>
        recordOf(unit).catch((error: unknown) => {
          stopped = true;
          throw error;
        }),
      ),
    ),
  );
  journal.close();
  bar.finish();
  // The first failure by order of units that is not just the echo of another one.
  const failures = settled.filter((result) => result.status === "rejected").map(({ reason }) => reason as unknown);
  if (failures.length > 0) throw failures.find((failure) => !isError(failure, "INTERRUPTED")) ?? failures[0];
  return settled.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
}

function recordStage(input: PipelineInput): Promise<RecordingRecord[]> {
  const { config, model, signal } = input;
  const units = [...input.tasks.values()].flatMap((task) =>
    Array.from({ length: config.tasks.runs }, (_, run) => ({
      task,
      id: config.tasks.runs === 1 ? task.id : `${task.id}-${run}`,
    })),
  );
  const journal = input.folder.journal("recordings.jsonl", recordingSchema);
  return stage(
    input,
    "record",
    journal,
    units,
    (unit) => unit.id,
    (record) => record.id,
    async ({ task, id }) => {
      const setting = settingOf(input, task);
      const recording = await recordRun(setting, seededModel(model, ...recordingRun(config, id)), signal);
      const fault = await identityFault(setting, recording);
      return asRecord(recordingSchema, { id, taskId: task.id, ...recording, notReplayable: fault });
    },
  );
}

async function searchStage(input: PipelineInput, failed: readonly RecordingRecord[]): Promise<SearchRecord[]> {
  const { strategies } = input.config.search;
  const units = failed.flatMap((recording) => strategies.map((strategy) => ({ recording, strategy })));
  const journal = input.folder.journal("searches.jsonl", searchRecordSchema);
  const key = (id: string, strategy: string): string => `${id} ${strategy}`;
  return stage(
    input,
    "search for t*",
    journal,
    units,
    (unit) => key(unit.recording.id, unit.strategy),
    (record) => key(record.id, record.strategy),
    ({ recording, strategy }) => searchOne(input, recording, strategy),
  );
}

async function searchOne(input: PipelineInput, recording: RecordingRecord, strategyId: string): Promise<SearchRecord> {
  const { config } = input;
  const { id } = recording;
  if (recording.notReplayable !== undefined) {
    const none = { evidence: [], corrections: [], rejectedCorrections: [], liveCalls: 0 };
    return { id, strategy: strategyId, verdict: "not-replayable", ...none };
  }
  const experiment = createReplayExperiment({
    id,
    setting: settingOf(input, taskOf(input, recording)),
    recording,
    model: input.model,
    analyzer: input.analyzer,
    analyzerAttempts: config.search.analyzerAttempts,
    seed: config.seed,
    ...(input.signal === undefined ? {} : { signal: input.signal }),
  });
  const result = await searchStrategyById(strategyId).search(experiment, config.search);
  const agent = result.step === undefined ? undefined : recording.tape.calls[result.step]?.lane;
  return asRecord(searchRecordSchema, {
    id,
    strategy: strategyId,
    ...result,
    agent,
    corrections: experiment.corrections(),
    rejectedCorrections: experiment.rejected(),
    liveCalls: experiment.liveCalls,
  });
}

function truthStage(input: PipelineInput, simulator: SimulatorConfig, failed: readonly RecordingRecord[]): Promise<TruthRecord[]> {
  const solve = knowledgeOf([...input.tasks.values()]);
  const journal = input.folder.journal("truth.jsonl", truthRecordSchema);
  const work = async (recording: RecordingRecord): Promise<TruthRecord> => {
    const truth = await trueDecisiveStep(settingOf(input, taskOf(input, recording)), recording, solve);
    const erred = await stepsInError(recording, simulator, solve, recordingRun(input.config, recording.id));
    return { id: recording.id, step: truth?.step ?? null, agent: truth?.agent ?? null, erred: [...erred] };
  };
  return stage(
    input,
    "simulator's truth",
    journal,
    failed,
    (unit) => unit.id,
    (record) => record.id,
    work,
  );
}

function injectStage(input: PipelineInput, recordings: readonly RecordingRecord[]): Promise<InjectionRecord[]> {
  const { config, model } = input;
  const operator = injectionOperatorById(config.inject.operator);
  const units = recordings.filter((recording) => recording.outcome.success && recording.notReplayable === undefined);
  const journal = input.folder.journal("injections.jsonl", injectionRecordSchema);
  return stage(
    input,
    "inject",
    journal,
    units,
    (unit) => unit.id,
    (record) => record.id,
    async (recording) => {
      const task = taskOf(input, recording);
      const { failed, ...result } = await injectFault({
        id: recording.id,
        setting: settingOf(input, task),
        recording,
        model,
        operator,
        settings: config.inject,
        test: config.search,
        seed: config.seed,
        ...(input.signal === undefined ? {} : { signal: input.signal }),
      });
      if (failed === undefined) return { id: recording.id, ...result, points: [...result.points] };
      const { step, agent, run } = failed;
      const trajectory = trajectoryOf({
        id: recording.id,
        task,
        system: input.system,
        calls: run.calls,
        outcome: run.outcome,
        labels: [{ agent, step, source: "injection", evidenceRef: recording.id }],
        model: model.id,
        simulated: input.simulator !== undefined,
      });
      return { id: recording.id, ...result, points: [...result.points], trajectory };
    },
  );
}

/** Names the random draws of a recorded run: seed first. */
function recordingRun(config: SynthConfig, id: string): readonly [number, ...string[]] {
  return [config.seed, "record", id];
}

/** Through JSON, so that a record is the same whether it was just made or read back by a resumed run. */
function asRecord<T>(schema: z.ZodType<T>, value: unknown): T {
  return schema.parse(JSON.parse(JSON.stringify(value)));
}

function settingOf({ system, taskSet }: PipelineInput, task: Task): Setting {
  return { system, taskSet, task };
}

function taskOf({ tasks }: PipelineInput, recording: RecordingRecord): Task {
  const task = tasks.get(recording.taskId);
  if (task === undefined) throw new Error(`task ${recording.taskId} of a recording is not among the run's tasks`);
  return task;
}
