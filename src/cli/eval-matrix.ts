import { existsSync } from "node:fs";
import { join } from "node:path";
import { EXIT, type ExitCode, type RootstepError } from "../errors.ts";
import { type EvalConfig, type EvalFile, matrixRuns } from "../evaluation/config.ts";
import type { LoadedData } from "../evaluation/data.ts";
import { planEvaluation } from "../evaluation/plan.ts";
import { methodById } from "../methods/registry.ts";
import { type Budget, createBudget } from "../models/budget.ts";
import { type Arguments, type CommandContext, optionalString } from "./command.ts";
import { printComparison } from "./eval-compare.ts";
import { dataLoader, readEvalManifest, type ScoreDocument, scoreRun } from "./eval-folder.ts";
import { matrixPlan, renderMatrixPlan } from "./eval-plan.ts";

/** What the verb knows of runs: models, checkpoints, folders. */
export interface Runner {
  /** @throws RootstepError CONFIG_INVALID for a run that could not be begun */
  check(config: EvalConfig): void;
  /** Runs or goes on with one run in its folder. */
  runOne(
    config: EvalConfig,
    data: LoadedData,
    path: string,
    budget: Budget,
    context: CommandContext,
  ): Promise<{ readonly document: ScoreDocument; readonly stoppedBy: RootstepError | undefined }>;
}

/**
 * Every run of a matrix in its own folder, one after the other, under caps they share; then one comparison of all that is
 * there. Running again goes on. A cap or an interruption ends the matrix; a server that cannot be reached ends its run only.
 *
 * @throws RootstepError what ended a run early, after the comparison was printed; CONFIG_INVALID before anything is run
 */
export async function runMatrix(
  file: EvalFile,
  args: Arguments,
  context: CommandContext,
  { runOne, check }: Runner,
): Promise<ExitCode> {
  const out = optionalString(args, "out") ?? join("runs", "eval-matrix");
  const runs = matrixRuns(file);
  const load = dataLoader();
  for (const { config } of runs) {
    methodById(config.method).configure(config.options);
    if (!context.dryRun) check(config);
  }
  if (context.dryRun) {
    const planned = [];
    for (const { name, config } of runs) {
      const { items } = await load(config);
      const method = methodById(config.method).configure(config.options);
      planned.push({ name, config, plan: planEvaluation(items, method, config) });
    }
    const plan = matrixPlan(planned);
    context.print(plan, renderMatrixPlan(plan));
    return EXIT.ok;
  }

  const budget = createBudget({ maxCalls: file.maxCalls, maxCost: file.maxCost });
  let stoppedBy: RootstepError | undefined;
  let failedCalls = false;
  for (const [position, { name, config }] of runs.entries()) {
    context.progress.note(`run ${position + 1} of ${runs.length}: ${name}`);
    const outcome = await runOne(config, await load(config), join(out, name), budget, context);
    failedCalls ||= Object.keys(outcome.document.scores.errors).length > 0;
    stoppedBy ??= outcome.stoppedBy;
    if (outcome.stoppedBy !== undefined && endsMatrix(outcome.stoppedBy)) break;
  }

  const compared = [];
  for (const { name } of runs) {
    const path = join(out, name);
    if (!existsSync(join(path, "manifest.json"))) continue;
    const read = readEvalManifest(path);
    compared.push(scoreRun(path, read, await load(read.settings), false).run);
  }
  await printComparison(compared, { seed: file.seed, out }, context);
  if (stoppedBy !== undefined) throw stoppedBy;
  return failedCalls ? EXIT.failed : EXIT.ok;
}

/** Ends that the next run would meet as well. */
function endsMatrix(error: RootstepError): boolean {
  return error.code === "BUDGET_REACHED" || error.code === "INTERRUPTED";
}
