import { z } from "zod";
import { openTracerPolicy } from "../../trainer/open-tracer.ts";
import { EXIT, RootstepError } from "../errors.ts";
import {
  type EvaluationSet,
  loadTrajectoryFiles,
  loadWhoAndWhen,
  WHO_AND_WHEN_CHOICES,
} from "../evaluation/datasets.ts";
import { floorsFor } from "../evaluation/floors.ts";
import { planEvaluation } from "../evaluation/plan.ts";
import { latestPredictions, predictionSchema } from "../evaluation/prediction.ts";
import { evaluate } from "../evaluation/run.ts";
import { type Scores, scorePredictions } from "../evaluation/score.ts";
import type { MethodContext } from "../methods/method.ts";
import { methodById } from "../methods/registry.ts";
import { createBudget } from "../models/budget.ts";
import { openFileStore } from "../models/cache-store.ts";
import { modelConfigSchema, modelFromConfig } from "../models/resolve.ts";
import { evaluationTable, type FloorsByGroup } from "../report/evaluation-report.ts";
import { openRunFolder, type RunFolder, readRunManifest } from "../runs/run-folder.ts";
import { type CommandContext, command, optionalString, plainCommand, stringArgument } from "./command.ts";

const count = z.number().int().positive();

export const evalConfigSchema = z.strictObject({
  method: z.string().describe("attribution method; `rootstep list methods` shows them"),
  options: z.record(z.string(), z.unknown()).default({}).describe('options of the method, as YAML: "{step: 4}"'),
  data: z
    .strictObject({
      files: z.array(z.string()).optional().describe("TracerTraj or other trajectory files; default: Who&When"),
      folder: z.string().optional().describe("a Who&When folder; default: the copy that ships"),
      subset: z.enum(WHO_AND_WHEN_CHOICES).default("all").describe("subset of Who&When"),
      clean: z
        .boolean()
        .default(false)
        .describe("only labels that name the speaker of their step, no duplicate history"),
    })
    .prefault({}),
  withReference: z.boolean().default(false).describe('show the reference answer to the method (the papers\' "w/ G")'),
  epochs: count.default(1).describe("repetitions per log"),
  limit: count.optional().describe("only the first so many logs"),
  seed: z.number().int().default(0).describe("seed of random methods and bootstraps"),
  model: modelConfigSchema.optional().describe("model server to ask"),
  checkpoint: z.string().optional().describe("for method tracer: a training run or checkpoint of the embedded engine"),
  concurrency: count.default(4).describe("logs worked on at the same time"),
  maxCalls: count.optional().describe("hard cap on model calls of this invocation"),
  maxCost: z.number().positive().optional().describe("hard cap on money, in the currency of model.prices"),
});
type EvalConfig = z.infer<typeof evalConfigSchema>;

/** Stored in the manifest: what a later `eval score` needs to find the same logs. */
const scoredSettingsSchema = evalConfigSchema.pick({ method: true, data: true, limit: true, seed: true });

/** `eval run`: a method over a set of failed runs, scored both ways beside the floors. */
export const evalRun = command<EvalConfig>({
  name: "eval run",
  describe: "run an attribution method over Who&When or other labelled runs and score it",
  schema: evalConfigSchema,
  arguments: [
    { name: "out", describe: "run folder [default: runs/eval-METHOD-SUBSET]; running again goes on", type: "string" },
  ],
  plans: true,
  examples: [
    "eval run --method floor-constant-step --options '{step: 1}' --data.subset algorithm-generated",
    "eval run --method all-at-once --model.provider openai-compatible --model.base-url http://127.0.0.1:8000/v1 --model.model Qwen3-8B",
  ],
  async run(config, args, context) {
    const set = await loadSet(config);
    const method = methodById(config.method).configure(config.options);
    if (context.dryRun) {
      const plan = planEvaluation(set.items, method, config);
      context.print(plan, renderPlan(config, plan));
      return EXIT.ok;
    }
    if (method.needs.model && config.model === undefined && config.checkpoint === undefined) {
      throw new RootstepError("CONFIG_INVALID", {
        what: `method ${config.method} asks a model and none is configured`,
        where: "setting model (or checkpoint, for a trained tracer)",
      });
    }
    const out =
      optionalString(args, "out") ??
      `runs/eval-${config.method}-${config.data.files === undefined ? config.data.subset : "files"}`;
    const { concurrency, maxCalls, maxCost, ...settings } = config;
    const folder = openRunFolder({ path: out, kind: "eval", version: context.version, settings, now: context.now });
    try {
      const stoppedBy = await runInFolder(config, set, method, folder, context);
      const scores = scoreFolder(set, config, folder);
      context.print(scores.document, scores.text);
      if (stoppedBy !== undefined) throw stoppedBy;
      return Object.keys(scores.document.scores.errors).length === 0 ? EXIT.ok : EXIT.failed;
    } finally {
      folder.release();
    }
  },
});

/** `eval score`: scores a run folder again, offline. */
export const evalScore = plainCommand({
  name: "eval score",
  describe: "score the predictions of a run folder again; asks no model",
  arguments: [{ name: "folder", describe: "run folder of eval run", type: "string", positional: true, required: true }],
  async run(_, args, context) {
    const path = stringArgument(args, "folder");
    const manifest = readRunManifest(path);
    const settings = scoredSettingsSchema.safeParse(
      manifest.kind === "eval" ? pickSettings(manifest.settings) : undefined,
    );
    if (!settings.success) {
      throw new RootstepError("RUN_MISMATCH", {
        what: `the folder holds a ${manifest.kind} run that cannot be scored`,
        where: path,
      });
    }
    const set = await loadSet(settings.data);
    const folder = openRunFolder({ ...manifest, path, version: context.version, now: context.now });
    try {
      const { document, text } = scoreFolder(set, settings.data, folder);
      context.print(document, text);
      return EXIT.ok;
    } finally {
      folder.release();
    }
  },
});

function pickSettings({ method, data, limit, seed }: Record<string, unknown>): Record<string, unknown> {
  return { method, data, limit, seed };
}

type SetChoice = Pick<EvalConfig, "data" | "limit">;

async function loadSet({ data, limit }: SetChoice): Promise<EvaluationSet> {
  const set =
    data.files === undefined
      ? await loadWhoAndWhen({ subset: data.subset, clean: data.clean, dir: data.folder })
      : await loadTrajectoryFiles(data.files, { clean: data.clean });
  return { ...set, items: set.items.slice(0, limit) };
}

async function runInFolder(
  config: EvalConfig,
  set: EvaluationSet,
  method: ReturnType<ReturnType<typeof methodById>["configure"]>,
  folder: RunFolder,
  context: CommandContext,
): Promise<RootstepError | undefined> {
  const journal = folder.journal("predictions.jsonl", predictionSchema);
  const total = set.items.length * config.epochs;
  const done = latestPredictions(journal.existing);
  const kept = [...done.values()].filter((prediction) => prediction.error === undefined).length;
  const bar = context.progress.stage(config.method, total, Math.min(kept, total));
  const answerer = await openAnswerer(config, folder, context);
  try {
    const result = await evaluate({
      items: set.items,
      method,
      context: { ...answerer.context, seed: config.seed },
      withReference: config.withReference,
      epochs: config.epochs,
      concurrency: config.concurrency,
      signal: context.signal,
      done,
      onPrediction: (prediction) => {
        journal.append(prediction);
        bar.advance();
      },
      now: () => context.now().getTime(),
    });
    return result.stoppedBy;
  } finally {
    journal.close();
    bar.finish();
    await answerer.close();
  }
}

/** Model server (behind cache, retries, limiter, budget) or embedded checkpoint, whichever is configured. */
async function openAnswerer(
  config: EvalConfig,
  folder: RunFolder,
  context: CommandContext,
): Promise<{ readonly context: Pick<MethodContext, "model" | "policy">; close(): Promise<void> }> {
  if (config.checkpoint !== undefined) {
    const { policy, close } = await openTracerPolicy(config.checkpoint);
    return { context: { policy }, close };
  }
  if (config.model === undefined) return { context: {}, close: async () => {} };
  const cache = await openFileStore(folder.file("calls.jsonl"));
  const budget = createBudget({ maxCalls: config.maxCalls, maxCost: config.maxCost });
  return {
    context: { model: modelFromConfig(config.model, context.env, { budget, cache }) },
    close: () => cache.close(),
  };
}

interface ScoreDocument {
  readonly set: string;
  readonly scores: Scores;
  readonly floors: FloorsByGroup;
  readonly problems: EvaluationSet["problems"];
}

function scoreFolder(
  set: EvaluationSet,
  { method, seed }: Pick<EvalConfig, "method" | "seed">,
  folder: RunFolder,
): { readonly document: ScoreDocument; readonly text: string } {
  const journal = folder.journal("predictions.jsonl", predictionSchema);
  journal.close();
  const scores = scorePredictions(set.items, [...latestPredictions(journal.existing).values()], { seed });
  const floors = Object.fromEntries(
    Object.keys(scores.byGroup).map((group) => [group, floorsFor(set.items.filter((item) => item.subset === group))]),
  );
  const document = { set: set.name, scores, floors, problems: set.problems };
  folder.write("scores.json", `${JSON.stringify(document, null, 2)}\n`);
  const problems = set.problems.map(
    (problem) => `${problem.dropped ? "left out" : "note"}: ${problem.where}: ${problem.message}`,
  );
  const text = [
    evaluationTable(`${method} on ${set.name}`, scores, floors),
    ...problems,
    `written to ${folder.path}`,
  ].join("\n");
  return { document, text };
}

function renderPlan(config: EvalConfig, plan: ReturnType<typeof planEvaluation>): string {
  const prices = config.model?.prices;
  const range = ({ low, expected, high }: { low: number; expected: number; high: number }): string =>
    `${low} / ${expected} / ${high}`;
  const cost = (end: "low" | "expected" | "high"): string =>
    prices === undefined
      ? "unknown"
      : ((plan.promptTokens[end] * prices.prompt + plan.completionTokens[end] * prices.completion) / 1e6).toFixed(2);
  return [
    `${config.method}: ${plan.items} logs, ${plan.predictions} predictions (low / expected / high)`,
    `calls             ${range(plan.calls)}`,
    `prompt tokens     ${range(plan.promptTokens)}`,
    `completion tokens ${range(plan.completionTokens)}`,
    `cost              ${prices === undefined ? "unknown: set model.prices" : `${cost("low")} / ${cost("expected")} / ${cost("high")}`}`,
    plan.basis,
    "nothing was run",
  ].join("\n");
}
