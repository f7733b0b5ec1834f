import type { ChatModel } from "../../src/models/chat-model.ts";
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
import { type StageInput, stage } from "./stage.ts";
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

function recordStage(input: PipelineInput): Promise<RecordingRecord[]> {
  const { config, model, signal } = input;
  const units = [...input.tasks.values()].flatMap((task) =>
    Array.from({ length: config.tasks.runs }, (_, run) => ({
      task,
      id: config.tasks.runs === 1 ? task.id : `${task.id}-${run}`,
    })),
  );
  return stage(
    stageInput(input),
    "record",
    { file: "recordings.jsonl", schema: recordingSchema },
    units,
    (unit) => unit.id,
    (record) => record.id,
    async ({ task, id }) => {
      const setting = settingOf(input, task);
      const recording = await recordRun(setting, seededModel(model, ...recordingRun(config, id)), signal);
      const fault = await identityFault(setting, recording);
      return { id, taskId: task.id, ...recording, notReplayable: fault };
    },
  );
}

async function searchStage(input: PipelineInput, failed: readonly RecordingRecord[]): Promise<SearchRecord[]> {
  const { strategies } = input.config.search;
  const units = failed.flatMap((recording) => strategies.map((strategy) => ({ recording, strategy })));
  const key = (id: string, strategy: string): string => `${id} ${strategy}`;
  return stage(
    stageInput(input),
    "search for t*",
    { file: "searches.jsonl", schema: searchRecordSchema },
    units,
    (unit) => key(unit.recording.id, unit.strategy),
    (record) => key(record.id, record.strategy),
    ({ recording, strategy }) => searchOne(input, recording, strategy),
  );
}

async function searchOne(input: PipelineInput, recording: RecordingRecord, strategyId: string): Promise<unknown> {
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
  return {
    id,
    strategy: strategyId,
    ...result,
    agent,
    corrections: experiment.corrections(),
    rejectedCorrections: experiment.rejected(),
    liveCalls: experiment.liveCalls,
  };
}

function truthStage(
  input: PipelineInput,
  simulator: SimulatorConfig,
  failed: readonly RecordingRecord[],
): Promise<TruthRecord[]> {
  const solve = knowledgeOf([...input.tasks.values()]);
  const work = async (recording: RecordingRecord) => {
    const truth = await trueDecisiveStep(settingOf(input, taskOf(input, recording)), recording, solve);
    const erred = await stepsInError(recording, simulator, solve, recordingRun(input.config, recording.id));
    return { id: recording.id, step: truth?.step ?? null, agent: truth?.agent ?? null, erred };
  };
  return stage(
    stageInput(input),
    "simulator's truth",
    { file: "truth.jsonl", schema: truthRecordSchema },
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
  return stage(
    stageInput(input),
    "inject",
    { file: "injections.jsonl", schema: injectionRecordSchema },
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
      if (failed === undefined) return { id: recording.id, ...result };
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
      return { id: recording.id, ...result, trajectory };
    },
  );
}

function stageInput({ folder, progress, config, signal }: PipelineInput): StageInput {
  return { folder, progress, concurrency: config.concurrency, ...(signal === undefined ? {} : { signal }) };
}

/** Names the random draws of a recorded run: seed first. */
function recordingRun(config: SynthConfig, id: string): readonly [number, ...string[]] {
  return [config.seed, "record", id];
}

function settingOf({ system, taskSet }: PipelineInput, task: Task): Setting {
  return { system, taskSet, task };
}

function taskOf({ tasks }: PipelineInput, recording: RecordingRecord): Task {
  const task = tasks.get(recording.taskId);
  if (task === undefined) throw new Error(`task ${recording.taskId} of a recording is not among the run's tasks`);
  return task;
}
