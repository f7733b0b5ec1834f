import { type TrainConfig, trainConfigSchema } from "../../trainer/config.ts";
import { dataHash, splitByGroup, type TrainingData, type TrainingExample } from "../../trainer/dataset.ts";
import type { EngineState } from "../../trainer/engines/engine.ts";
import type { LoopState } from "../../trainer/loop.ts";
import { describeEngine, openEngine } from "../../trainer/open-engine.ts";
import { findCheckpoint } from "../../trainer/open-tracer.ts";
import { planTraining, type TrainingPlan } from "../../trainer/plan.ts";
import { type TrainingEvent, trainRun } from "../../trainer/train-run.ts";
import { endOf, openCourse } from "../../trainer/training-course.ts";
import { sha256 } from "../checksum.ts";
import { describeError, EXIT } from "../errors.ts";
import { textTable } from "../report/table.ts";
import { openRunFolder } from "../runs/run-folder.ts";
import type { Trajectory } from "../trajectory/schema.ts";
import { type CommandContext, command, optionalNumber, optionalString, stringArgument } from "./command.ts";
import { buildTrainingData, noteRefused, TRAINING_DATA, trainingTrajectories } from "./training-data.ts";

/** `train run`: GRPO of a tracer on labelled runs, in a resumable folder. */
export const trainRunCommand = command<TrainConfig>({
  name: "train run",
  describe: "train a tracer with GRPO on labelled runs",
  schema: trainConfigSchema,
  arguments: [
    TRAINING_DATA,
    { name: "out", describe: "run folder; running again goes on", type: "string", required: true },
    {
      name: "held-out-share",
      describe: "share of task groups kept for evaluation while training [default: 0.1]",
      type: "number",
    },
    { name: "from", describe: "start from the weights of this run or checkpoint (train sft)", type: "string" },
    { name: "threads", describe: "threads of the embedded engine [default: 2]", type: "number" },
  ],
  plans: true,
  examples: ["train run --config configs/train-embedded.yaml --data runs/chain/dataset --out runs/tracer"],
  async run(config, args, context) {
    const threads = optionalNumber(args, "threads") ?? 2;
    const prepared = await prepare(
      config,
      await trainingTrajectories(args),
      optionalNumber(args, "held-out-share") ?? 0.1,
    );
    if (context.dryRun) {
      context.print(prepared.plan, renderPlan(config, prepared.plan, prepared.data));
      return EXIT.ok;
    }
    const from = optionalString(args, "from");
    const start = from === undefined ? undefined : (await findCheckpoint(from)).engineState;
    const out = stringArgument(args, "out");
    const state = await runTraining({ config, prepared, out, threads, ...(start && { start }) }, context);
    context.print(state, renderState(config, state, out));
    return EXIT.ok;
  },
});

export interface Prepared {
  readonly data: TrainingData;
  readonly train: readonly TrainingExample[];
  readonly heldOut: readonly TrainingExample[];
  readonly plan: TrainingPlan;
}

/** Builds the engine's examples and the plan of a run. */
export async function prepare(
  config: TrainConfig,
  trajectories: readonly Trajectory[],
  heldOutShare: number,
): Promise<Prepared> {
  const data = await buildTrainingData(config, trajectories);
  const { limits } = await describeEngine(config.engine);
  const { train, heldOut } = splitByGroup(data.examples, { heldOutFraction: heldOutShare, seed: config.seed });
  return { data, train, heldOut, plan: planTraining(config, { examples: train, heldOut }, limits) };
}

export interface TrainingRequest {
  readonly config: TrainConfig;
  readonly prepared: Prepared;
  readonly out: string;
  readonly threads: number;
  /** Weights that a fresh run begins with. */
  readonly start?: EngineState;
}

/** Trains in a run folder and frees it, whatever happens. */
export async function runTraining(
  { config, prepared, out, threads, start }: TrainingRequest,
  context: CommandContext,
): Promise<LoopState> {
  const { train, heldOut, data, plan } = prepared;
  noteRefused(data, context.progress);
  for (const warning of plan.warnings) context.progress.note(`warning: ${warning}`);
  const { checkpointEvery: _every, keepCheckpoints: _keep, servers: _servers, cluster: _cluster, ...settings } = config;
  const inputs = { examples: dataHash(train, heldOut), ...(start && { start: sha256(start.weights) }) };
  const folder = openRunFolder({
    path: out,
    kind: "train",
    version: context.version,
    settings,
    inputs,
    now: context.now,
  });
  const opened = await openEngine({
    config,
    environment: context.env,
    folder: folder.path,
    threads,
    signal: context.signal,
    onRetry: (error, server) => context.progress.note(`${server} is asked again: ${error.what}`),
  }).catch(async (error: unknown) => {
    await openCourse(folder.path, context.now).note(endOf(error));
    folder.release();
    throw error;
  });
  for (const note of opened.notes) context.progress.note(`note: ${note}`);
  let bar = context.progress.stage("train", config.steps);
  try {
    return await trainRun({
      config,
      engine: opened.engine,
      ...(opened.rollouts && { rollouts: opened.rollouts }),
      ...(opened.sync && { sync: opened.sync }),
      examples: train,
      heldOut,
      ...(start && { start }),
      folder: folder.path,
      signal: context.signal,
      clock: context.now,
      onMetric: ({ reward }) => bar.advance(1, `reward ${reward.mean.toFixed(3)}, step ${reward.exactStep.toFixed(3)}`),
      onEvaluation: ({ stepsDone, stepAccuracy, n }) =>
        context.progress.note(
          `held out after ${stepsDone} steps: step accuracy ${(100 * stepAccuracy).toFixed(1)}% (n=${n})`,
        ),
      onEvent: (event) => {
        if (event.kind === "resumed") bar = context.progress.stage("train", config.steps, event.stepsDone);
        else noteEvent(event, context);
      },
    });
  } finally {
    bar.finish();
    await opened.close();
    folder.release();
  }
}

function noteEvent(event: TrainingEvent, { progress }: CommandContext): void {
  if (event.kind === "corrupt-checkpoint") progress.note(describeError(event.error));
  if (event.kind === "ratio-check-skipped") {
    progress.note(
      "the first batch was sampled ahead by a policy that is gone: sampler and engine are not compared on it; its ratios are in the metrics",
    );
  }
  if (event.kind === "ratio-check") {
    progress.note(
      `ratio at unchanged weights: mean ${event.stats.mean.toFixed(6)}, spread ${event.stats.std.toExponential(1)}`,
    );
  }
}

function renderPlan(config: TrainConfig, plan: TrainingPlan, data: TrainingData): string {
  const rows = [
    ["steps", String(plan.steps)],
    ["examples (train / held out / refused)", `${plan.examples} / ${plan.heldOut} / ${data.refused.length}`],
    ["passes over the examples", plan.epochs.toFixed(1)],
    ["rollouts (expected / high)", `${plan.rollouts.expected} / ${plan.rollouts.high}`],
    ["optimiser steps", String(plan.updates)],
    ["completion tokens at most", String(plan.tokens.completionAtMost ?? "unknown")],
    ["clip bound, first to last step", `${plan.clip.first} to ${plan.clip.last.toFixed(3)}`],
    ["money", config.engine.kind === "embedded" ? "none: the embedded engine runs here" : "unknown: the servers' own"],
  ];
  return [
    textTable("Plan of train run; nothing was run", ["", ""], rows),
    ...plan.warnings.map((line) => `warning: ${line}`),
  ].join("\n");
}

function renderState(config: TrainConfig, state: LoopState, out: string): string {
  const best =
    state.best === null
      ? "no held-out runs"
      : `best held-out step accuracy ${(100 * state.best.stepAccuracy).toFixed(1)}% after ${state.best.stepsDone} steps (n=${state.best.n})`;
  return `${state.step} of ${config.steps} steps done; ${best}\ncheckpoints and metrics in ${out}; evaluate with: rootstep train eval ${out}${config.engine.kind === "embedded" ? " --with-reference --data.files FILE" : " --servers.engine URL"}`;
}
