/**
 * Labels per second on 1, 2 and 4 worker processes, with a model that takes 50 ms a call:
 * `npx tsx scripts/bench/workers.ts [tasks] [latency ms]` (needs redis-server).
 *
 * Each worker does two units at a time. The time is that of the search stage, from the end of recording to the last label;
 * runs are recorded before it by the same workers.
 */
import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { silentProgress } from "../../src/runs/progress.ts";
import { openRunFolder } from "../../src/runs/run-folder.ts";
import { synthConfigSchema } from "../../synth/pipeline/config.ts";
import type { SynthReport } from "../../synth/pipeline/report.ts";
import { redisQueue } from "../../synth/queue/redis-queue.ts";
import { registrationOf } from "../../synth/queue/run-registration.ts";
import { synthesize } from "../../synth/synthesize.ts";
import { runWorker } from "../../synth/worker/run-worker.ts";
import { unitExecutors } from "../../synth/worker/unit-executors.ts";
import { startRedis } from "../../tests/redis-server.ts";

const VERSION = "bench";
const WORKER = "--worker";
const SLOTS = 2;

if (process.argv[2] === WORKER) await work(process.argv[3] ?? "", Number(process.argv[4]));
else await measure(Number(process.argv[2] ?? 48), Number(process.argv[3] ?? 50));

async function work(url: string, latencyMs: number): Promise<void> {
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  const info = { id: `bench-${randomUUID()}`, host: hostname(), pid: process.pid, version: VERSION, slots: SLOTS };
  await runWorker({
    url,
    info,
    executors: (redis) =>
      unitExecutors(redis, {
        info,
        openModel: () => {
          throw new Error("the benchmark asks the simulator only");
        },
        aroundSimulator: (model) => ({
          id: model.id,
          async complete(request, options) {
            await sleep(latencyMs);
            return model.complete(request, options);
          },
        }),
      }),
    leaseMs: 30_000,
    limitMs: 3_600_000,
    graceMs: 0,
    signal: stop.signal,
    note: console.error,
  });
}

async function measure(tasks: number, latencyMs: number): Promise<void> {
  console.log(
    `${tasks} chain tasks (seed 1), bayes, simulator with ${latencyMs} ms a call, ${SLOTS} units per worker at a time`,
  );
  let single: number | undefined;
  for (const count of [1, 2, 4]) {
    const { labels, seconds } = await runOn(count, tasks, latencyMs);
    const rate = labels / seconds;
    single ??= rate;
    const line = `${count} worker${count === 1 ? " " : "s"}: ${labels} labels in ${seconds.toFixed(1)} s`;
    console.log(`${line}, ${rate.toFixed(3)} labels/s, ${(rate / single).toFixed(2)} × one worker`);
  }
}

async function runOn(count: number, tasks: number, latencyMs: number): Promise<{ labels: number; seconds: number }> {
  const redis = await startRedis();
  const workers = Array.from({ length: count }, () =>
    fork(fileURLToPath(import.meta.url), [WORKER, redis.url, String(latencyMs)]),
  );
  const path = join(mkdtempSync(join(tmpdir(), "rootstep-bench-")), "run");
  try {
    return await coordinate(path, redis.url, tasks);
  } finally {
    for (const worker of workers) await ended(worker);
    await redis.stop();
    rmSync(join(path, ".."), { recursive: true });
  }
}

async function coordinate(path: string, url: string, tasks: number): Promise<{ labels: number; seconds: number }> {
  const config = synthConfigSchema.parse({
    tasks: { set: "chain", limit: tasks },
    model: { provider: "simulator", regime: "systematic", hardRate: 1, noise: 0 },
    // No single run may outlast the others: the end would be a wait for it, whatever the number of workers.
    search: { maxLiveCalls: 200 },
    inject: { operator: "none" },
  });
  const folder = openRunFolder({ path, kind: "synth", version: VERSION, settings: config, now: () => new Date() });
  let [begun, finished] = [0, 0];
  const report: SynthReport = await synthesize({
    config,
    folder,
    progress: {
      ...silentProgress,
      stage: (name) => ({
        advance() {
          if (name === "search for t*") finished = performance.now();
        },
        finish() {
          if (name === "record") begun = performance.now();
        },
      }),
    },
    openModel: () => {
      throw new Error("the coordinator asks no model");
    },
    openQueue: (context, ledger) =>
      redisQueue({
        url,
        version: VERSION,
        run: ledger.runId,
        epoch: ledger.epoch,
        registration: registrationOf(context),
        note: () => {},
        onWorkers: (workers) => ledger.seen(workers),
      }),
  });
  folder.release();
  return { labels: report.strategies[0]?.labelled.hits ?? 0, seconds: (finished - begun) / 1000 };
}

async function ended(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null) return;
  const exit = once(worker, "exit");
  worker.kill("SIGTERM");
  await exit;
}
