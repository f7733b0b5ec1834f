import { existsSync, rmSync, statSync } from "node:fs";
import { type OpenTracer, openTracerPolicy, tracerChecksum } from "../../trainer/open-tracer.ts";
import { EXIT, type ExitCode, RootstepError } from "../errors.ts";
import { type EvalConfig, evalConfigSchema, evalFileSchema, isMatrix, singleRun } from "../evaluation/config.ts";
import type { LoadedData } from "../evaluation/data.ts";
import { planEvaluation } from "../evaluation/plan.ts";
import { latestPredictions, type Prediction, predictionSchema } from "../evaluation/prediction.ts";
import { evaluate } from "../evaluation/run.ts";
import type { ConfiguredMethod, MethodContext } from "../methods/method.ts";
import { methodById } from "../methods/registry.ts";
import { type Budget, createBudget } from "../models/budget.ts";
import { openFileStore } from "../models/cache-store.ts";
import { modelFromConfig } from "../models/resolve.ts";
import { openRunFolder, type RunFolder } from "../runs/run-folder.ts";
import {
  type AnyCommand,
  type Arguments,
  type CommandContext,
  optionalString,
  plainCommand,
  stringArgument,
} from "./command.ts";
import {
  dataLoader,
  inputsOf,
  movedData,
  readEvalManifest,
  type ScoreDocument,
  scoreRun,
  sealPredictions,
  writeScores,
} from "./eval-folder.ts";
import { runMatrix } from "./eval-matrix.ts";
import { renderPlan } from "./eval-plan.ts";

/** `eval run`: a method over a set of failed runs, or a matrix of methods, models and sets, scored beside the floors. */
export const evalRun: AnyCommand = {
  name: "eval run",
  describe: "run an attribution method over Who&When or other labelled runs and score it",
  // The flags are those of one run; lists (methods, models, subsets) are given in a --config file.
  schema: evalConfigSchema,
  arguments: [
    {
      name: "out",
      describe: "run folder [default: runs/eval-METHOD-SUBSET, of a matrix runs/eval-matrix]; running again goes on",
      type: "string",
    },
  ],
  plans: true,
  examples: [
    "eval run --method floor-constant-step --options '{step: 1}' --data.subset algorithm-generated",
    "eval run --method all-at-once --model.provider openai-compatible --model.base-url http://127.0.0.1:8000/v1 --model.model Qwen3-8B",
    "eval run --config configs/eval-who-and-when.yaml --out runs/who-and-when",
  ],
  async start(load, args, context) {
    const file = load(evalFileSchema);
    return isMatrix(file)
      ? runMatrix(file, args, context, { runOne, check })
      : runSingle(singleRun(file), args, context);
  },
};

async function runSingle(config: EvalConfig, args: Arguments, context: CommandContext): Promise<ExitCode> {
  const method = methodById(config.method).configure(config.options);
  const data = await dataLoader()(config);
  if (context.dryRun) {
    const plan = planEvaluation(data.items, method, config);
    context.print(plan, renderPlan(config, plan));
    return EXIT.ok;
  }
  const out =
    optionalString(args, "out") ??
    `runs/eval-${config.method}-${config.data.files === undefined ? config.data.subset : "files"}`;
  const budget = createBudget({ maxCalls: config.maxCalls, maxCost: config.maxCost });
  const { document, text, stoppedBy } = await runOne(config, data, out, budget, context);
  context.print(document, text);
  if (stoppedBy !== undefined) throw stoppedBy;
  return Object.keys(document.scores.errors).length === 0 ? EXIT.ok : EXIT.failed;
}

type OpenPolicy = (checkpoint: string) => Promise<OpenTracer>;

/** A run's result; `stoppedBy` says why it is not complete. */
interface RunOutcome {
  readonly document: ScoreDocument;
  readonly text: string;
  readonly stoppedBy: RootstepError | undefined;
}

/**
 * Runs or goes on with one run in its folder, and scores what is there.
 * @param openPolicy opens the checkpoint's policy where its weights are on a server
 * @throws RootstepError CONFIG_INVALID (no model for a method that asks one), RUN_…, DATA_…
 */
export async function runOne(
  config: EvalConfig,
  data: LoadedData,
  path: string,
  budget: Budget,
  context: CommandContext,
  openPolicy: OpenPolicy = openTracerPolicy,
): Promise<RunOutcome> {
  const method = methodById(config.method).configure(config.options);
  requireAnswerer(config, method);
  const { concurrency, maxCalls, maxCost, ...settings } = config;
  // Predictions of two checkpoints never mix: a folder is only gone on with by the weights that began it.
  const checkpoint = config.checkpoint === undefined ? {} : { checkpoint: await tracerChecksum(config.checkpoint) };
  const folder = openRunFolder({
    path,
    kind: "eval",
    version: context.version,
    settings,
    inputs: { ...inputsOf(data.version), ...checkpoint },
    now: context.now,
  });
  try {
    const stoppedBy = await runInFolder(config, data, method, folder, budget, context, openPolicy);
    sealPredictions(path);
    const scored = scoreRun(path, readEvalManifest(path), data, false);
    return { document: scored.document, text: await writeScores(path, scored, config.seed), stoppedBy };
  } finally {
    folder.release();
  }
}

const check = (config: EvalConfig): void => requireAnswerer(config, methodById(config.method));

/** @throws RootstepError CONFIG_INVALID */
function requireAnswerer(config: EvalConfig, method: Pick<ConfiguredMethod, "needs">): void {
  if (!method.needs.model || config.model !== undefined || config.checkpoint !== undefined) return;
  throw new RootstepError("CONFIG_INVALID", {
    what: `method ${config.method} asks a model and none is configured`,
    where: "setting model (or checkpoint, for a trained tracer)",
  });
}

async function runInFolder(
  config: EvalConfig,
  data: LoadedData,
  method: ConfiguredMethod,
  folder: RunFolder,
  budget: Budget,
  context: CommandContext,
  openPolicy: OpenPolicy,
): Promise<RootstepError | undefined> {
  // What the run writes from here on is no edit: the seal of an earlier invocation goes.
  rmSync(folder.file("predictions.sha256"), { force: true });
  const journal = folder.journal("predictions.jsonl", predictionSchema);
  const total = data.items.length * config.epochs;
  const done = latestPredictions(journal.existing);
  const kept = [...done.values()].filter((prediction) => prediction.error === undefined);
  const bar = context.progress.stage(config.method, total, Math.min(kept.length, total));
  let failed = 0;
  let unread = kept.filter(withoutAnswer).length;
  const detail = (): string =>
    [failed > 0 ? `${failed} failed` : "", unread > 0 ? `${unread} without an answer` : ""]
      .filter((part) => part !== "")
      .join(", ");
  const answerer = await openAnswerer(config, folder, budget, context, openPolicy);
  try {
    const result = await evaluate({
      items: data.items,
      method,
      context: { ...answerer.context, seed: config.seed },
      withReference: config.withReference,
      epochs: config.epochs,
      concurrency: config.concurrency,
      signal: context.signal,
      done,
      onPrediction: async (prediction) => {
        await journal.appendSoon(prediction);
        if (prediction.error !== undefined) failed += 1;
        else if (withoutAnswer(prediction)) unread += 1;
        bar.advance(1, detail());
      },
      now: () => context.now().getTime(),
    });
    return result.stoppedBy;
  } finally {
    journal.close();
    bar.finish(detail());
    await answerer.close();
  }
}

const withoutAnswer = ({ parseFailure, noStepNamed }: Prediction): boolean =>
  parseFailure !== undefined || noStepNamed === true;

/** Model server (behind cache, retries, limiter, budget) or checkpoint, whichever is configured. */
async function openAnswerer(
  config: EvalConfig,
  folder: RunFolder,
  budget: Budget,
  context: CommandContext,
  openPolicy: OpenPolicy,
): Promise<{ readonly context: Pick<MethodContext, "model" | "policy">; close(): Promise<void> }> {
  if (config.checkpoint !== undefined) {
    const { policy, notes, close } = await openPolicy(config.checkpoint);
    for (const note of notes) context.progress.note(`note: ${note}`);
    return { context: { policy }, close };
  }
  if (config.model === undefined) return { context: {}, close: async () => {} };
  const cache = await openFileStore(folder.file("calls.jsonl"));
  return {
    context: { model: modelFromConfig(config.model, context.env, { budget, cache }) },
    close: () => cache.close(),
  };
}

/** `eval score`: scores a run folder again, offline. */
export const evalScore = plainCommand({
  name: "eval score",
  describe: "score the predictions of a run folder again; asks no model",
  arguments: [
    { name: "folder", describe: "run folder of eval run", type: "string", positional: true, required: true },
    { name: "data", describe: "where the run's data lies now: a folder, or files", type: "array" },
    { name: "force", describe: "score on other data than the run's; the result is marked", type: "boolean" },
  ],
  examples: ["eval score runs/eval-all-at-once-all", "eval score runs/mine --data ../data/mine"],
  async run(_, args, context) {
    const path = stringArgument(args, "folder");
    const read = readEvalManifest(path);
    const moved = Array.isArray(args.data) ? args.data.map(String) : [];
    const data =
      moved.length === 0
        ? read.settings.data
        : movedData(read.settings.data, moved, (at) => existsSync(at) && statSync(at).isDirectory());
    const scored = scoreRun(path, read, await dataLoader()({ data, limit: read.settings.limit }), args.force === true);
    context.print(scored.document, await writeScores(path, scored, read.settings.seed));
    return EXIT.ok;
  },
});
