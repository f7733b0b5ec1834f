import { writeTracerTraj } from "../src/formats/tracertraj/write.ts";
import type { ChatModel } from "../src/models/chat-model.ts";
import type { ModelConfig } from "../src/models/resolve.ts";
import type { Progress } from "../src/runs/progress.ts";
import type { RunFolder } from "../src/runs/run-folder.ts";
import type { Task } from "../src/trajectory/schema.ts";
import { datasetCard } from "./dataset/card.ts";
import { buildDataset } from "./dataset/dataset.ts";
import { injectionOperatorById } from "./inject/registry.ts";
import type { AgentModelConfig, SynthConfig } from "./pipeline/config.ts";
import { type PipelineInput, runPipeline } from "./pipeline/pipeline.ts";
import { reportOf, type SynthReport } from "./pipeline/report.ts";
import { searchStrategyById } from "./search/registry.ts";
import { knowledgeOf } from "./simulator/knowledge.ts";
import { simulatedModel } from "./simulator/simulator.ts";
import { systemById } from "./systems/registry.ts";
import { taskSetById } from "./tasks/registry.ts";

export interface SynthesizeInput {
  readonly config: SynthConfig;
  readonly folder: RunFolder;
  readonly progress: Progress;
  readonly signal?: AbortSignal;
  /** Opens a model server; the simulator is opened here. */
  readonly openModel: (config: ModelConfig) => ChatModel;
  /** Puts the caller's caps around the simulator, as `openModel` does around servers. */
  readonly withCaps?: (model: ChatModel) => ChatModel;
}

/**
 * `synth run`: the whole way from tasks to a TracerTraj dataset in one run folder: journals of every stage,
 * `dataset/{train,test,evidence}.jsonl`, a card, and `report.json`.
 *
 * @throws RootstepError those of the pipeline; UNKNOWN_NAME for a task set, system, strategy or operator
 */
export async function synthesize(options: SynthesizeInput): Promise<SynthReport> {
  const { config, folder, progress, signal } = options;
  const taskSet = taskSetById(config.tasks.set);
  const tasks = await taskSet.load({ seed: config.seed, limit: config.tasks.limit });
  const model = open(config.model, tasks, options);
  const input: PipelineInput = {
    config,
    folder,
    system: systemById(config.system),
    taskSet,
    tasks: new Map(tasks.map((task) => [task.id, task])),
    model,
    analyzer: config.analyzer === undefined ? model : open(config.analyzer, tasks, options),
    simulator: config.model.provider === "simulator" ? config.model : undefined,
    progress,
    ...(signal === undefined ? {} : { signal }),
  };
  const records = await runPipeline(input);
  const dataset = buildDataset(input, records);
  await writeTracerTraj(dataset.splits.train, folder.file("dataset", "train.jsonl"));
  await writeTracerTraj(dataset.splits.test, folder.file("dataset", "test.jsonl"));
  folder.write("dataset/evidence.jsonl", dataset.evidence.map((line) => `${JSON.stringify(line)}\n`).join(""));
  folder.write("dataset/README.md", datasetCard(input, dataset));
  const report = reportOf(records, dataset, config.search.strategies);
  folder.write("report.json", `${JSON.stringify(report, null, 2)}\n`);
  return report;
}

/** @throws RootstepError UNKNOWN_NAME, before anything is written */
export function requireKnownNames({ tasks, system, search, inject }: SynthConfig): void {
  taskSetById(tasks.set);
  systemById(system);
  search.strategies.forEach(searchStrategyById);
  if (inject.operator !== "none") injectionOperatorById(inject.operator);
}

function open(config: AgentModelConfig, tasks: readonly Task[], { openModel, withCaps }: SynthesizeInput): ChatModel {
  if (config.provider !== "simulator") return openModel(config);
  const simulator = simulatedModel({ config, solve: knowledgeOf(tasks) });
  return withCaps === undefined ? simulator : withCaps(simulator);
}
