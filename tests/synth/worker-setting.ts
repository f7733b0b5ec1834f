import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { modelFromConfig } from "../../src/models/resolve.ts";
import { silentProgress } from "../../src/runs/progress.ts";
import { openRunFolder } from "../../src/runs/run-folder.ts";
import { readRunStatus } from "../../synth/ledger/read.ts";
import { synthConfigSchema } from "../../synth/pipeline/config.ts";
import type { SynthReport } from "../../synth/pipeline/report.ts";
import { redisQueue } from "../../synth/queue/redis-queue.ts";
import { registrationOf } from "../../synth/queue/run-registration.ts";
import { type SynthesizeInput, synthesize } from "../../synth/synthesize.ts";
import { runWorker, type WorkerTally } from "../../synth/worker/run-worker.ts";
import { type Executors, unitExecutors } from "../../synth/worker/unit-executors.ts";
import { digest } from "../e2e/killed-runs.ts";

export const VERSION = "test";

/** Small, and with every stage: some runs fail, some succeed. */
export const SETTINGS = {
  tasks: { set: "chain", limit: 8 },
  model: { provider: "simulator", regime: "systematic", hardRate: 0.5, noise: 0.02 },
  search: { strategies: ["exhaustive", "paper"] },
} as const;

const folders: string[] = [];

/** A path for a run folder; `cleanUp` removes it. */
export function freshRun(): string {
  const folder = mkdtempSync(join(tmpdir(), "rootstep-worker-"));
  folders.push(folder);
  return join(folder, "run");
}

export interface RunOptions {
  readonly settings?: unknown;
  readonly redis?: string;
  readonly signal?: AbortSignal;
  readonly version?: string;
  readonly notes?: string[];
}

/** `synth run` in a folder, in this process or on the workers of a Redis. */
export async function runIn(
  path: string,
  { settings = SETTINGS, redis, signal, version = VERSION, notes = [] }: RunOptions = {},
): Promise<SynthReport> {
  const config = synthConfigSchema.parse(settings);
  const { maxCalls: _, maxCost: __, concurrency: ___, ...decisive } = config;
  const folder = openRunFolder({ path, kind: "synth", version: "test", settings: decisive, now: () => new Date(0) });
  const openQueue: SynthesizeInput["openQueue"] =
    redis === undefined
      ? undefined
      : (context, ledger) =>
          redisQueue({
            url: redis,
            version,
            run: ledger.runId,
            epoch: ledger.epoch,
            registration: registrationOf(context),
            note: (line) => notes.push(line),
            onWorkers: (workers) => ledger.seen(workers),
            sweepMs: 50,
          });
  try {
    return await synthesize({
      config,
      folder,
      progress: silentProgress,
      openModel: (model) => modelFromConfig(model, {}),
      openQueue,
      ...(signal === undefined ? {} : { signal }),
    });
  } finally {
    folder.release();
  }
}

/** Files of a run whose bytes must not depend on who did the work. */
export const filesOf = (path: string): string[] => digest(path, ["manifest.json", "ledger.sqlite"]);

/** What the ledger says of each stage, but for times. */
export const bookOf = (path: string): unknown =>
  readRunStatus(path).stages.map(({ stage, units, cost, callsUnderWay }) => ({ stage, units, cost, callsUnderWay }));

export const bookedCalls = (path: string): number =>
  readRunStatus(path).stages.reduce((sum, { cost }) => sum + cost.calls, 0);

/** Units done so far; 0 before there is a ledger. */
export const doneUnits = (path: string): number =>
  existsSync(join(path, "ledger.sqlite"))
    ? readRunStatus(path).stages.reduce((sum, { units }) => sum + units.done, 0)
    : 0;

export interface TestWorker {
  stop(): Promise<WorkerTally>;
}

export interface TestWorkerOptions {
  readonly slots?: number;
  readonly version?: string;
  readonly leaseMs?: number;
  readonly graceMs?: number;
  readonly aroundSimulator?: (model: ChatModel) => ChatModel;
  readonly executors?: Executors;
}

const started = new Set<TestWorker>();

/** For `afterEach`: what a failed test has left running would do the next one's work. */
export async function cleanUp(): Promise<void> {
  await Promise.allSettled([...started].map((worker) => worker.stop()));
  started.clear();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** A worker in this process; many share it. */
export function startWorker(url: string, options: TestWorkerOptions = {}): TestWorker {
  const { slots = 2, version = VERSION, leaseMs = 1000, graceMs = 10_000, aroundSimulator, executors } = options;
  const stop = new AbortController();
  const info = { id: `worker-${randomUUID().slice(0, 8)}`, host: "here", pid: process.pid, version, slots };
  const running = runWorker({
    url,
    info,
    executors: (redis) =>
      executors ??
      unitExecutors(redis, {
        info,
        openModel: (config, budget) => modelFromConfig(config, {}, { budget }),
        aroundSimulator,
      }),
    leaseMs,
    limitMs: 60_000,
    graceMs,
    signal: stop.signal,
    note: () => {},
  });
  const worker: TestWorker = {
    stop() {
      stop.abort();
      return running;
    },
  };
  started.add(worker);
  return worker;
}
