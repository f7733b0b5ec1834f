import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildExamples, type ExampleOptions, type TrainingData } from "../../trainer/dataset.ts";
import type { EngineConfig } from "../../trainer/engine-config.ts";
import { describeEngine } from "../../trainer/open-engine.ts";
import { loadTrajectoryFiles } from "../evaluation/datasets.ts";
import type { Progress } from "../runs/progress.ts";
import type { Trajectory } from "../trajectory/schema.ts";
import type { Argument, Arguments } from "./command.ts";

/** The argument of every verb that trains. */
export const TRAINING_DATA: Argument = {
  name: "data",
  describe: "TracerTraj files or dataset folders (their train split)",
  type: "array",
  required: true,
};

/** The trajectories of the given files, and of given folders the train split. */
export async function trainingTrajectories(args: Arguments): Promise<Trajectory[]> {
  const given = Array.isArray(args.data) ? args.data.map(String) : [];
  const files = given.map((path) => (existsSync(join(path, "train.jsonl")) ? join(path, "train.jsonl") : path));
  const { items } = await loadTrajectoryFiles(files);
  return items.map(({ trajectory }) => trajectory);
}

/** Examples as the configuration's engine reads them. */
export async function buildTrainingData(
  config: Omit<ExampleOptions, "maxPrompt"> & { readonly engine: EngineConfig },
  trajectories: readonly Trajectory[],
): Promise<TrainingData> {
  const { codec, limits } = await describeEngine(config.engine);
  return buildExamples(trajectories, codec, { ...config, maxPrompt: limits.maxPrompt });
}

/** Says how many records cannot teach, and why. */
export function noteRefused({ refusedCounts, examples, refused }: TrainingData, progress: Progress): void {
  for (const [reason, count] of Object.entries(refusedCounts)) {
    progress.note(`${count} of ${examples.length + refused.length} records cannot teach: ${reason}`);
  }
}
