import { type SynthConfig, synthConfigSchema } from "../../synth/pipeline/config.ts";
import type { Share, StrategyReport, SynthReport } from "../../synth/pipeline/report.ts";
import { requireKnownNames, type SynthesizeInput, synthesize } from "../../synth/synthesize.ts";
import { EXIT } from "../errors.ts";
import { wilsonInterval } from "../evaluation/statistics.ts";
import { createBudget, withBudget } from "../models/budget.ts";
import { modelFromConfig } from "../models/resolve.ts";
import { shareCell, textTable } from "../report/table.ts";
import { openRunFolder } from "../runs/run-folder.ts";
import { type CommandContext, command, optionalString, stringArgument } from "./command.ts";
import { redisArgument, redisUrl } from "./redis-argument.ts";
import { printSynthPlan } from "./synth-plan.ts";

/** `synth run`: tasks → recorded runs → labels → dataset, in one resumable run folder. */
export const synthRun = command<SynthConfig>({
  name: "synth run",
  describe: "record runs, label the failed ones by replay, inject faults into the others, write a dataset",
  schema: synthConfigSchema,
  plans: true,
  arguments: [
    { name: "out", describe: "run folder; running again goes on", type: "string", required: true },
    redisArgument("have the work done by `rootstep worker` processes on this Redis"),
    {
      name: "prior",
      describe: "where the search looks first: an attribution method or a predictions.jsonl; same as --search.prior",
      type: "string",
    },
  ],
  examples: [
    "synth run --out runs/gsm8k --tasks.limit 50 --search.strategies exhaustive paper",
    "synth run --out runs/gsm8k --redis redis://127.0.0.1:6379",
  ],
  async run(config, args, context) {
    if (context.dryRun) return printSynthPlan(config, context);
    const out = stringArgument(args, "out");
    const prior = optionalString(args, "prior");
    const settings = prior === undefined ? config : { ...config, search: { ...config.search, prior } };
    const report = await runSynth(settings, out, context, redisUrl(args, context));
    context.print(report, renderSynth(report));
    if (report.dead === undefined) return EXIT.ok;
    context.progress.note(`units are missing that could not be done: rootstep synth status ${out} --dead`);
    return EXIT.failed;
  },
});

/**
 * Runs the pipeline in a folder and frees it, whatever happens.
 * @param redis URL of the Redis whose workers do the units; without it they are done in this process
 */
export async function runSynth(
  config: SynthConfig,
  out: string,
  context: CommandContext,
  redis?: string,
): Promise<SynthReport> {
  requireKnownNames(config);
  // Caps and concurrency may change between a run and its continuation without changing what it makes.
  const { maxCalls, maxCost, concurrency: _, ...settings } = config;
  const folder = openRunFolder({ path: out, kind: "synth", version: context.version, settings, now: context.now });
  const budget = createBudget({ maxCalls, maxCost });
  try {
    return await synthesize({
      config,
      folder,
      progress: context.progress,
      signal: context.signal,
      now: context.now,
      openQueue: redis === undefined ? undefined : queueOn(redis, context),
      openModel: (model) => modelFromConfig(model, context.env, { budget }),
      withCaps: (model) => (maxCalls === undefined ? model : withBudget(model, budget)),
    });
  } finally {
    folder.release();
  }
}

/** The coordinator's end of a queue on Redis. */
function queueOn(url: string, { version, progress }: CommandContext): NonNullable<SynthesizeInput["openQueue"]> {
  return async (units, ledger) => {
    // Loaded here: runs without Redis, and every other command, need none of it.
    const { registrationOf } = await import("../../synth/queue/run-registration.ts");
    const { redisQueue } = await import("../../synth/queue/redis-queue.ts");
    return redisQueue({
      url,
      version,
      run: ledger.runId,
      epoch: ledger.epoch,
      registration: registrationOf(units),
      note: (line) => progress.note(line),
      onWorkers: (workers) => ledger.seen(workers),
    });
  };
}

export function renderSynth(report: SynthReport): string {
  const { injection, dead = {} } = report;
  const missing = Object.entries(dead).map(([stage, units]) => `${units} of stage ${stage}`);
  return [
    `${report.runs} runs recorded, ${report.failedRuns} failed, ${report.notReplayable} not replayable`,
    ...Object.entries(report.refused ?? {}).map(([why, problems]) => `${problems} problems refused: ${why}`),
    searchTable("Search for the decisive step in failed runs", report.strategies),
    ...report.strategies.flatMap(renderAnalyzer),
    injectionLine(report),
    ...operatorLine(injection.operators),
    `Dataset: ${report.dataset.train} train, ${report.dataset.test} test`,
    ...unlabelledLine(report.unlabelled),
    costLine(report.cost.perLabel),
    ...(missing.length === 0 ? [] : [`Dead units, missing above: ${missing.join(", ")}`]),
  ].join("\n\n");
}

function injectionLine({ injection, runs, failedRuns }: SynthReport): string {
  const { successfulRuns, admitted, labelled, liveCalls } = injection;
  if (successfulRuns === 0 && runs > failedRuns) return "Injection: not tried";
  return `Injection: ${successfulRuns} successful runs, ${admitted} reliable enough, ${labelled} failed by an injected fault (${liveCalls} live calls)`;
}

function unlabelledLine(unlabelled: SynthReport["unlabelled"]): string[] {
  const counts = Object.entries(unlabelled).map(([why, runs]) => `${runs} ${why}`);
  return counts.length === 0 ? [] : [`Failed runs without a label, in unlabelled.jsonl: ${counts.join(", ")}`];
}

/** Decisive points of those tried, by operator. */
function operatorLine(operators: SynthReport["injection"]["operators"]): string[] {
  const counts = Object.entries(operators).map(([operator, { hits, n }]) => `${operator} ${hits} of ${n}`);
  return counts.length === 0 ? [] : [`Injected labels by operator, of the points tried: ${counts.join(", ")}`];
}

/** What the analyzer, its control arms and e-BH had to say under one strategy; a line each, where there is something. */
function renderAnalyzer({ strategy, analyzer, controls, fdr }: StrategyReport): string[] {
  const share = ({ hits, n }: Share): string => (n === 0 ? "no reruns" : shareCell(hits, n, wilsonInterval));
  return [
    ...(analyzer === undefined || analyzer.asked === 0
      ? []
      : [
          `Analyzer under ${strategy}: ${analyzer.asked} corrections asked for, ${analyzer.usable} usable, ${analyzer.leaked} leaked, ${analyzer.refused} refused, ${analyzer.nonsense} nonsense, ${analyzer.rewritten} rewritten; ${analyzer.corrected} of ${analyzer.steps} steps corrected, ${analyzer.confirmed} confirmed by reruns; ${analyzer.meanEditShare === null ? "no edit" : `${(100 * analyzer.meanEditShare).toFixed(0)}% of a step changed on average`}`,
        ]),
    ...(controls === undefined
      ? []
      : [
          `Reruns at labelled steps under ${strategy} that succeed (%): corrected ${share(controls.treated)}, as recorded ${share(controls.control)}, rephrased (placebo) ${share(controls.placebo)}, answer given away (hint) ${share(controls.hint)}`,
        ]),
    ...(fdr === undefined
      ? []
      : [`e-BH at ${fdr.level} under ${strategy}: keeps ${fdr.kept.hits} of ${fdr.kept.n} labels`]),
  ];
}

/** Everything that was spent on the dataset, by its labels. */
function costLine(perLabel: SynthReport["cost"]["perLabel"]): string {
  if (perLabel === null) return "Cost per label: there is no label";
  const { calls, promptTokens, completionTokens, money } = perLabel;
  const paid = money === null ? "money unknown (no prices)" : `${money.toFixed(4)} in money`;
  return `Cost per label, recording and injection included: ${calls.toFixed(0)} calls, ${promptTokens.toFixed(0)} prompt and ${completionTokens.toFixed(0)} completion tokens, ${paid}`;
}

/** Yield, accuracy against the truth where it is known, and cost of each strategy. */
export function searchTable(title: string, strategies: readonly StrategyReport[]): string {
  const share = (value: Share | undefined): string =>
    value === undefined ? "truth unknown" : shareCell(value.hits, value.n, wilsonInterval);
  return textTable(
    title,
    ["strategy", "failed runs", "labelled (%)", "step right (%)", "agent right (%)", "live calls / label"],
    strategies.map(({ strategy, failedRuns, labelled, stepAccuracy, agentAccuracy, liveCalls }) => [
      strategy,
      String(failedRuns),
      share(labelled),
      share(stepAccuracy),
      share(agentAccuracy),
      labelled.hits === 0 ? "–" : (liveCalls / labelled.hits).toFixed(0),
    ]),
  );
}
