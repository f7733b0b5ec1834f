import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Progress } from "../src/runs/progress.ts";
import type { RunFolder } from "../src/runs/run-folder.ts";
import { buildDataset } from "./dataset/dataset.ts";
import { writeDataset } from "./dataset/write.ts";
import { injectionOperatorById } from "./inject/registry.ts";
import { type Ledger, openLedger } from "./ledger/ledger.ts";
import { LEDGER_FILE, LOCK_FILE } from "./ledger/open.ts";
import type { SynthConfig } from "./pipeline/config.ts";
import { readUnitCosts } from "./pipeline/costs.ts";
import { runPipeline } from "./pipeline/pipeline.ts";
import { reportOf, type SynthReport } from "./pipeline/report.ts";
import { executableStages } from "./pipeline/stages.ts";
import { type ModelOpener, openUnitContext, type UnitContext } from "./pipeline/unit-context.ts";
import { unitExecutor } from "./pipeline/unit-stage.ts";
import { inProcessQueue } from "./queue/in-process.ts";
import type { JobQueue } from "./queue/queue.ts";
import { searchStrategyById } from "./search/registry.ts";
import { systemById } from "./systems/registry.ts";
import { taskSetById } from "./tasks/registry.ts";

export interface SynthesizeInput extends ModelOpener {
  readonly config: SynthConfig;
  readonly folder: RunFolder;
  readonly progress: Progress;
  readonly signal?: AbortSignal;
  /** Where units go to be worked on; by default they run in this process. */
  readonly openQueue?: ((context: UnitContext, ledger: Ledger) => Promise<JobQueue>) | undefined;
  /** For the ledger's time stamps; nothing is decided by them. */
  readonly now?: () => Date;
}

/**
 * `synth run`: the whole way from tasks to a TracerTraj dataset in one run folder: the ledger, journals of every stage,
 * `dataset/` (JSON Lines and Parquet of both splits, evidence, card), and `report.json`.
 *
 * @throws RootstepError those of the pipeline; UNKNOWN_NAME for a task set, system, strategy or operator; RUN_LOCKED
 */
export async function synthesize(options: SynthesizeInput): Promise<SynthReport> {
  const { config, folder, progress, signal } = options;
  const interruptible = signal === undefined ? {} : { signal };
  const context = await openUnitContext(config, options);
  const ledger = openRunLedger(folder.path, options.now ?? (() => new Date()));
  try {
    const queue =
      (await options.openQueue?.(context, ledger)) ??
      inProcessQueue({
        concurrency: config.concurrency,
        execute: unitExecutor(context, executableStages),
        onPart: (job, part) => ledger.keep(job, part),
        ...interruptible,
      });
    try {
      const input = { ...context, folder, ledger, queue, progress, ...interruptible };
      const records = await runPipeline(input);
      const dataset = buildDataset(input, records);
      await writeDataset(folder, input, records, dataset);
      ledger.sync();
      const report = reportOf(records, dataset, config.search, readUnitCosts(folder.path), context.refused);
      folder.write("report.json", `${JSON.stringify(report, null, 2)}\n`);
      return report;
    } finally {
      await queue.close();
    }
  } finally {
    ledger.close();
  }
}

/** The ledger of a run folder, for its one coordinator. @throws RootstepError RUN_LOCKED, RUN_VERSION, RUN_CORRUPT */
export function openRunLedger(path: string, now: () => Date): Ledger {
  return openLedger({
    file: `${path}/${LEDGER_FILE}`,
    lockFile: `${path}/${LOCK_FILE}`,
    coordinator: { host: hostname(), pid: process.pid, since: now().toISOString() },
    newRunId: randomUUID,
    now: () => now().getTime(),
  });
}

/** @throws RootstepError UNKNOWN_NAME, before anything is written */
export function requireKnownNames({ tasks, system, search, inject }: SynthConfig): void {
  taskSetById(tasks.set);
  systemById(system);
  search.strategies.forEach(searchStrategyById);
  if (inject.operator !== "none") injectionOperatorById(inject.operator);
}
