import { z } from "zod";
import type { ChatModel } from "../../src/models/chat-model.ts";
import type { Task } from "../../src/trajectory/schema.ts";
import { injectFault } from "../inject/inject.ts";
import { injectionOperatorById } from "../inject/registry.ts";
import { identityFault, recordRun, type Setting, seededModel } from "../replay.ts";
import { correctionControls } from "../search/correction-controls.ts";
import { stoppingAlpha } from "../search/label-e-value.ts";
import { askForPrior, isPriorMethod } from "../search/prior-source.ts";
import { searchStrategyById } from "../search/registry.ts";
import { createReplayExperiment } from "../search/replay-experiment.ts";
import { simulatedModelFor } from "../simulator/players/registry.ts";
import { stepsInError, trueDecisiveStep } from "../simulator/truth.ts";
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
import type { UnitContext } from "./unit-context.ts";
import { rememberedAnalyzer, rememberedExperiment, rememberedModel } from "./unit-parts.ts";
import { type ExecutableStage, executable, type UnitRun, type UnitStage } from "./unit-stage.ts";

const recordPayload = z.strictObject({ id: z.string(), taskId: z.string() });

/** One run of one task, with its identity gate. */
export const recordStage: UnitStage<z.infer<typeof recordPayload>, RecordingRecord> = {
  id: "record",
  title: "record",
  file: "recordings.jsonl",
  payload: recordPayload,
  record: recordingSchema,
  keyOf: ({ id }) => id,
  keyOfRecord: ({ id }) => id,
  async work({ id, taskId }, run) {
    const setting = settingOf(run, taskId);
    const model = seededModel(rememberedAgents(id, run), ...recordingRun(run.config, id));
    const recording = await recordRun(setting, model, run.signal);
    const fault = await identityFault(setting, recording);
    return { id, taskId, ...recording, notReplayable: fault };
  },
};

const searchPayload = z.strictObject({
  recording: recordingSchema,
  strategy: z.string(),
  /** Weights over the steps, where the coordinator has them from a file. */
  prior: z.array(z.number().nonnegative()).exactOptional(),
});
const searchKey = (id: string, strategy: string): string => `${id} ${strategy}`;

/** One strategy on one failed run. Each rerun and each answer of the analyzer is kept as it comes. */
export const searchStage: UnitStage<z.infer<typeof searchPayload>, SearchRecord> = {
  id: "search",
  title: "search for t*",
  file: "searches.jsonl",
  payload: searchPayload,
  record: searchRecordSchema,
  keyOf: ({ recording, strategy }) => searchKey(recording.id, strategy),
  keyOfRecord: ({ id, strategy }) => searchKey(id, strategy),
  async work({ recording, strategy, prior: given }, run) {
    const { config, meter, parts, signal } = run;
    const { id } = recording;
    if (recording.notReplayable !== undefined) {
      const none = { evidence: [], corrections: [], rejectedCorrections: [], liveCalls: 0 };
      return { id, strategy, verdict: "not-replayable", ...none };
    }
    const setting = settingOf(run, recording.taskId);
    const analyzer = rememberedAnalyzer(run.analyzer, id, parts, meter);
    const inner = createReplayExperiment({
      id,
      setting,
      recording,
      model: run.model,
      analyzer,
      analyzerAttempts: config.search.analyzerAttempts,
      seed: config.seed,
      signal,
    });
    const experiment = rememberedExperiment(inner, id, parts, meter);
    const { alpha, fdr, controlReruns } = config.search;
    const prior = given ?? (await priorByMethod(recording, { ...run, analyzer }));
    const settings = { ...config.search, alpha: stoppingAlpha(alpha, fdr) };
    const result = await searchStrategyById(strategy).search(experiment, settings, prior);
    const controls =
      controlReruns > 0 && result.verdict === "earliest-confirmed" && result.step !== undefined
        ? await correctionControls(experiment, result.step, controlReruns)
        : undefined;
    const agent = result.step === undefined ? undefined : recording.tape.calls[result.step]?.lane;
    return {
      id,
      strategy,
      ...result,
      agent,
      corrections: experiment.corrections(),
      rejectedCorrections: experiment.rejected(),
      analyzer: experiment.analyzerTally(),
      controls,
      prior,
      liveCalls: experiment.liveCalls,
    };
  },
};

/** What the method of `search.prior` believes about a run; undefined where the setting names a file or nothing. */
async function priorByMethod(recording: RecordingRecord, run: UnitRun): Promise<number[] | undefined> {
  const { config, system, model, simulator, analyzer, signal } = run;
  const method = config.search.prior;
  // A file is the coordinator's to read; another host need not have it.
  if (method === undefined || !isPriorMethod(method)) return undefined;
  const trajectory = trajectoryOf({
    id: recording.id,
    task: settingOf(run, recording.taskId).task,
    system,
    calls: recording.tape.calls,
    outcome: recording.outcome,
    labels: [],
    model: model.id,
    simulated: simulator !== undefined,
  });
  return askForPrior(method, trajectory, {
    strength: config.search.priorStrength,
    model: seededModel(analyzer, config.seed, "prior", recording.id),
    seed: config.seed,
    signal,
  });
}

const recordingPayload = z.strictObject({ recording: recordingSchema });

/** The simulator's own word on one failed run. Makes no call of the model. */
export const truthStage: UnitStage<z.infer<typeof recordingPayload>, TruthRecord> = {
  id: "truth",
  title: "simulator's truth",
  file: "truth.jsonl",
  payload: recordingPayload,
  record: truthRecordSchema,
  keyOf: ({ recording }) => recording.id,
  keyOfRecord: ({ id }) => id,
  async work({ recording }, run) {
    if (run.simulator === undefined) throw new Error("only a simulated run has a known truth");
    const open = await simulatedModelFor(run.system.id, [...run.tasks.values()]);
    const truth = await trueDecisiveStep(settingOf(run, recording.taskId), recording, open);
    const erred = await stepsInError(recording, run.simulator, open, recordingRun(run.config, recording.id));
    return { id: recording.id, step: truth?.step ?? null, agent: truth?.agent ?? null, erred };
  },
};

/** Injection into one successful run. */
export const injectStage: UnitStage<z.infer<typeof recordingPayload>, InjectionRecord> = {
  id: "inject",
  title: "inject",
  file: "injections.jsonl",
  payload: recordingPayload,
  record: injectionRecordSchema,
  keyOf: ({ recording }) => recording.id,
  keyOfRecord: ({ id }) => id,
  async work({ recording }, run) {
    const { config, system, meter, parts, signal } = run;
    const { id } = recording;
    const model = rememberedAgents(id, run);
    const setting = settingOf(run, recording.taskId);
    const { failed, ...result } = await injectFault({
      id,
      setting,
      recording,
      model,
      injector: rememberedAnalyzer(run.analyzer, id, parts, meter),
      operator: injectionOperatorById(config.inject.operator),
      settings: config.inject,
      test: config.search,
      seed: config.seed,
      signal,
    });
    if (failed === undefined) return { id, ...result };
    const { step, agent, run: failure } = failed;
    const trajectory = trajectoryOf({
      id,
      task: setting.task,
      system,
      calls: failure.calls,
      outcome: failure.outcome,
      labels: [{ agent, step, source: "injection", evidenceRef: id }],
      model: model.id,
      simulated: run.simulator !== undefined,
    });
    return { id, ...result, trajectory };
  },
};

/** Every stage whose units a worker can be given. */
export const executableStages: readonly ExecutableStage[] = [
  executable(recordStage),
  executable(searchStage),
  executable(truthStage),
  executable(injectStage),
];

/** The agents' model, whose answers outlive an attempt that is stopped; the simulator's cost nothing and are not kept. */
function rememberedAgents(id: string, { model, simulator, parts, meter }: UnitRun): ChatModel {
  return simulator === undefined ? rememberedModel(model, id, parts, meter) : model;
}

/** Names the random draws of a recorded run: seed first. */
function recordingRun(config: SynthConfig, id: string): readonly [number, ...string[]] {
  return [config.seed, "record", id];
}

function settingOf({ system, taskSet, tasks }: UnitContext, taskId: string): Setting {
  const task: Task | undefined = tasks.get(taskId);
  if (task === undefined) throw new Error(`task ${taskId} of a recording is not among the run's tasks`);
  return { system, taskSet, task };
}
