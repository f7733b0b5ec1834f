import { afterEach, beforeEach, expect, it } from "vitest";
import { z } from "zod";
import { cli, freshPath, type Running, startCli } from "../cli/run-cli.ts";
import { describeWithRedis, type RedisServer, startRedis } from "../redis-server.ts";
import { digest } from "./killed-runs.ts";

const runArgs = (out: string, limit = 30): string[] => [
  ...[
    "synth",
    "run",
    "--out",
    out,
    "--tasks.set",
    "chain",
    "--tasks.limit",
    String(limit),
    "--model.regime",
    "systematic",
  ],
  ...["--model.hard-rate", "0.5", "--model.noise", "0.02", "--search.strategies", "exhaustive", "paper"],
];
const MOVING = ["manifest.json", "ledger.sqlite"];

const statusSchema = z.object({
  stages: z.array(z.object({ stage: z.string(), total: z.number(), units: z.record(z.string(), z.number()) })),
  workers: z.array(z.object({ slots: z.number(), done: z.number() })),
});
const statusOf = async (out: string) =>
  statusSchema.parse(JSON.parse((await cli(["synth", "status", out, "--json"])).stdout));

describeWithRedis("worker and coordinator", () => {
  let redis: RedisServer;
  const running: Running[] = [];
  const start = (args: readonly string[], env: Record<string, string> = {}): Running => {
    const started = startCli(args, env);
    running.push(started);
    return started;
  };
  const startWorker = (): Running => start(["worker", "--redis", redis.url, "--lease", "1", "--grace", "0"]);

  beforeEach(async () => {
    redis = await startRedis();
  });
  afterEach(async () => {
    for (const { child, finished } of running.splice(0)) {
      child.kill("SIGKILL");
      await finished;
    }
    await redis.stop();
  });

  it("write the same files as one process; a second coordinator is refused meanwhile; status tells who did what", async () => {
    const alone = freshPath("alone");
    expect((await cli(runArgs(alone))).code).toBe(0);
    const workers = [startWorker(), startWorker()];
    const out = freshPath("run");
    const coordinator = start(runArgs(out), { ROOTSTEP_REDIS_URL: redis.url }); // the URL may come from the environment
    await coordinator.seen("search for t*: ");
    const [second, status] = await Promise.all([cli([...runArgs(out), "--redis", redis.url]), statusOf(out)]);
    expect([second.code, second.stderr.includes("error RUN_LOCKED")]).toEqual([2, true]);
    expect(status.stages.map(({ stage, total }) => [stage, total])[0]).toEqual(["record", 30]);
    expect(await coordinator.finished).toMatchObject({ code: 0 });
    expect(digest(out, MOVING)).toEqual(digest(alone, MOVING));
    const after = await statusOf(out);
    expect(after.stages.every(({ units, total }) => units.done === total)).toBe(true);
    const units = after.stages.reduce((sum, { total }) => sum + total, 0);
    expect(after.workers.reduce((sum, { done }) => sum + done, 0)).toBe(units);
    const shown = await cli(["synth", "status", out]);
    expect(shown.stdout).toContain("30 of 30");
    expect((await cli(["synth", "status", out, "--dead"])).stdout).toContain("no dead units");
    expect((await cli(["synth", "status", out, "--retry-dead"])).stdout).toContain("0 dead units");
    for (const { child } of workers) child.kill("SIGTERM");
    for (const { finished } of workers) expect((await finished).code).toBe(130);
  });

  it("stop at Ctrl-C with exit code 130 and go on, in whatever order; then one process finishes what workers began", async () => {
    const alone = freshPath("alone");
    expect((await cli(runArgs(alone))).code).toBe(0);
    const out = freshPath("run");
    const worker = startWorker();
    const coordinator = start([...runArgs(out), "--redis", redis.url]);
    await coordinator.seen("search for t*: ");
    worker.child.kill("SIGINT");
    const stopped = await worker.finished;
    expect([stopped.code, /\d+ units done, 0 failed, \d+ given back/u.test(stopped.stdout)]).toEqual([130, true]);
    await coordinator.seen("no worker on");
    coordinator.child.kill("SIGTERM");
    const ended = await coordinator.finished;
    expect([ended.code, ended.stderr.includes("error INTERRUPTED")]).toEqual([130, true]);
    expect(await cli(runArgs(out))).toMatchObject({ code: 0 });
    expect(digest(out, MOVING)).toEqual(digest(alone, MOVING));
  });
});

it("a worker without a Redis, and one whose Redis is away, say so with exit code 2", async () => {
  const without = await cli(["worker"]);
  expect([without.code, without.stderr.includes("ROOTSTEP_REDIS_URL")]).toEqual([2, true]);
  const away = await cli(["worker", "--redis", "redis://user:secret@127.0.0.1:1/0"]);
  expect([away.code, away.stderr.includes("error REDIS_UNREACHABLE")]).toEqual([2, true]);
  expect(away.stderr).not.toContain("secret");
});

it("the status of a folder without a run is refused, and makes nothing there", async () => {
  const { code, stderr } = await cli(["synth", "status", freshPath("nothing"), "--retry-dead"]);
  expect([code, stderr.includes("error FILE_MISSING")]).toEqual([2, true]);
});
