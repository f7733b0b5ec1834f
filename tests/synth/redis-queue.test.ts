import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { throwIfInterrupted } from "../../src/interruption.ts";
import type { ChatModel } from "../../src/models/chat-model.ts";

import { synthConfigSchema } from "../../synth/pipeline/config.ts";
import { KEY_PREFIX, QUEUE_NAME, requireUsableRedis } from "../../synth/queue/redis-connection.ts";
import { redisQueue } from "../../synth/queue/redis-queue.ts";
import { describeWithRedis, type RedisServer, startRedis } from "../redis-server.ts";
import { queueConformance } from "./queue.conformance.ts";
import {
  bookedCalls,
  bookOf,
  cleanUp,
  doneUnits,
  filesOf,
  freshRun,
  runIn,
  SETTINGS,
  startWorker,
  VERSION,
} from "./worker-setting.ts";

afterEach(cleanUp);

describeWithRedis("a queue on Redis", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  let runs = 0;
  queueConformance("redis", async (execute) => {
    const queue = await redisQueue({
      url: redis.url,
      version: VERSION,
      run: `run-${runs++}`, // ids of jobs must differ between tests on one Redis
      epoch: 1,
      registration: { config: synthConfigSchema.parse({}), tasks: "" },
      note: () => {},
      onWorkers: () => {},
      sweepMs: 50,
    });
    const worker = startWorker(redis.url, {
      graceMs: 0,
      executors: { executorOf: async () => execute, servers: () => [] },
    });
    return {
      queue,
      async close() {
        await worker.stop();
        await queue.close();
        const client = new Redis(redis.url);
        await client.flushall();
        client.disconnect();
      },
    };
  });

  it("makes the same files and books the same costs on one worker, on three, and in one process", async () => {
    const alone = freshRun();
    await runIn(alone);
    for (const count of [1, 3]) {
      const workers = Array.from({ length: count }, () => startWorker(redis.url));
      const out = freshRun();
      await runIn(out, { redis: redis.url });
      const tallies = await Promise.all(workers.map((worker) => worker.stop()));
      expect(filesOf(out)).toEqual(filesOf(alone));
      expect(bookOf(out)).toEqual(bookOf(alone));
      expect(tallies.every(({ failed }) => failed === 0)).toBe(true);
    }
  });

  it("leaves nothing of a finished run behind but its registration", async () => {
    const worker = startWorker(redis.url);
    await runIn(freshRun(), { redis: redis.url });
    await worker.stop();
    const client = new Redis(redis.url);
    const keys = await client.keys(`${KEY_PREFIX}:*`);
    client.disconnect();
    const ours = keys.filter((key) => !key.startsWith(`${KEY_PREFIX}:${QUEUE_NAME}`));
    expect(ours.filter((key) => !key.startsWith(`${KEY_PREFIX}:run:`))).toEqual([]);
  });

  it("gives jobs of another version back as dead letters with the reason, and a worker of the right one does them", async () => {
    const out = freshRun();
    const other = startWorker(redis.url, { version: "other" });
    await expect(runIn(out, { redis: redis.url })).rejects.toMatchObject({
      code: "JOB_VERSION",
      what: "the job was made by rootstep test, this worker is other",
    });
    await other.stop();
    const right = startWorker(redis.url);
    const report = await runIn(out, { redis: redis.url });
    await right.stop();
    expect(report.runs).toBe(8);
    expect(report.dead).toBeUndefined();
  });

  it("refuses a job that is none of ours, for good, and goes on", async () => {
    const queue = new Queue(QUEUE_NAME, { connection: { url: redis.url }, prefix: KEY_PREFIX });
    const foreign = await queue.add("mail", { to: "somebody" }, { jobId: "foreign-1", attempts: 5 });
    const worker = startWorker(redis.url);
    await runIn(freshRun(), { redis: redis.url });
    expect((await worker.stop()).failed).toBe(1);
    const after = await queue.getJob(foreign.id ?? "");
    // Unrecoverable: four attempts were left.
    expect([await after?.getState(), after?.attemptsMade]).toEqual(["failed", 1]);
    expect(after?.failedReason).toContain("JOB_UNREADABLE");
    await queue.close();
  });

  it("keeps the parts of a unit that a stopping worker gives back: another goes on where it stopped", async () => {
    const alone = freshRun();
    await runIn(alone);
    let calls = 0;
    const counting =
      (stopAfter: number, stop: () => void) =>
      (model: ChatModel): ChatModel => ({
        id: model.id,
        complete: async (request, options) => {
          calls++;
          if (calls === stopAfter) stop();
          await new Promise(setImmediate);
          throwIfInterrupted(options?.signal); // as a client of a server does
          return model.complete(request, options);
        },
      });
    const out = freshRun();
    const finished = runIn(out, { redis: redis.url });
    let tally: Promise<{ readonly givenBack: number }> | undefined;
    const first = startWorker(redis.url, {
      slots: 1,
      graceMs: 0,
      aroundSimulator: counting(800, () => {
        tally = first.stop();
      }),
    });
    while (tally === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await tally).givenBack).toBe(1);
    const second = startWorker(redis.url, { aroundSimulator: counting(Number.POSITIVE_INFINITY, () => {}) });
    await finished;
    await second.stop();
    expect(filesOf(out)).toEqual(filesOf(alone));
    expect(bookOf(out)).toEqual(bookOf(alone));
    // At most the rerun that was interrupted is made again: no run has 40 steps.
    const booked = bookedCalls(alone);
    expect(calls).toBeGreaterThanOrEqual(booked);
    expect(calls).toBeLessThan(booked + 40);
  });

  it("stops at a cap that all workers share, and goes on without it to the same files", async () => {
    const alone = freshRun();
    await runIn(alone);
    const out = freshRun();
    let calls = 0;
    const workers = Array.from({ length: 3 }, () =>
      startWorker(redis.url, {
        aroundSimulator: (model) => ({
          id: model.id,
          complete: (...given) => {
            calls++;
            return model.complete(...given);
          },
        }),
      }),
    );
    const capped = { ...SETTINGS, maxCalls: 300 };
    await expect(runIn(out, { redis: redis.url, settings: capped })).rejects.toMatchObject({ code: "BUDGET_REACHED" });
    expect(calls).toBeLessThanOrEqual(300);
    expect(calls).toBeGreaterThan(200);
    await runIn(out, { redis: redis.url });
    await Promise.all(workers.map((worker) => worker.stop()));
    expect(filesOf(out)).toEqual(filesOf(alone));
    expect(bookOf(out)).toEqual(bookOf(alone));
  });
});

describeWithRedis("a Redis with a fault", () => {
  const servers: RedisServer[] = [];
  const start = async (flags: readonly string[] = []): Promise<RedisServer> => {
    const server = await startRedis(flags);
    servers.push(server);
    return server;
  };
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop();
  });

  it("that may evict is refused", async () => {
    const redis = await start(["--maxmemory-policy", "allkeys-lru"]);
    await expect(requireUsableRedis(redis.url)).rejects.toMatchObject({
      code: "REDIS_POLICY",
      what: "Redis has maxmemory-policy allkeys-lru",
    });
    await expect(startWorker(redis.url).stop()).rejects.toMatchObject({ code: "REDIS_POLICY" });
    await expect(runIn(freshRun(), { redis: redis.url })).rejects.toMatchObject({ code: "REDIS_POLICY" });
  });

  it("that wants another password is named without the one that was given", async () => {
    const redis = await start(["--requirepass", "right-secret"]);
    const wrong = redis.url.replace("redis://", "redis://:wrong-secret@");
    for (const url of [redis.url, wrong]) {
      const refused = await requireUsableRedis(url).catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: "REDIS_AUTH" });
      expect(JSON.stringify([refused, String(refused)])).not.toContain("secret");
    }
    await requireUsableRedis(redis.url.replace("redis://", "redis://:right-secret@"));
  });

  it("that is not there is named, and so is a URL that is none", async () => {
    const redis = await start();
    await redis.stop();
    await expect(requireUsableRedis(redis.url)).rejects.toMatchObject({ code: "REDIS_UNREACHABLE" });
    await expect(requireUsableRedis("localhost:6379")).rejects.toMatchObject({ code: "USAGE" });
  });

  it("that restarts and has forgotten everything costs no result", async () => {
    const alone = freshRun();
    await runIn(alone);
    const redis = await start();
    const workers = [startWorker(redis.url), startWorker(redis.url)];
    const out = freshRun();
    const notes: string[] = [];
    let over = false;
    const run = runIn(out, { redis: redis.url, notes }).finally(() => {
      over = true;
    });
    // Never while somebody starts: that a Redis which is away at the start is refused has a test of its own.
    for (const units of [1, 4, 8, 12, 16]) {
      while (!over && doneUnits(out) < units) await new Promise((resolve) => setTimeout(resolve, 5));
      if (over) break;
      await redis.kill();
      await redis.restart();
    }
    await run;
    await Promise.all(workers.map((worker) => worker.stop()));
    expect(filesOf(out)).toEqual(filesOf(alone));
    expect(bookOf(out)).toEqual(bookOf(alone));
    expect(notes.some((note) => note.includes("is away"))).toBe(true);
  });

  it("that is full ends the run with an error that says so; with more memory it goes on", async () => {
    const alone = freshRun();
    await runIn(alone);
    const redis = await start();
    const client = new Redis(redis.url);
    const out = freshRun();
    await client.config("SET", "maxmemory", "1");
    const notes: string[] = [];
    await expect(runIn(out, { redis: redis.url, notes })).rejects.toMatchObject({ code: "REDIS_FULL" });
    expect(notes.some((note) => note.includes("is full"))).toBe(true);
    await client.config("SET", "maxmemory", "0");
    const worker = startWorker(redis.url);
    const run = runIn(out, { redis: redis.url });
    // Full for a while in the middle: workers wait with their results, the coordinator with its jobs.
    await new Promise((resolve) => setTimeout(resolve, 500));
    await client.config("SET", "maxmemory", "1");
    await new Promise((resolve) => setTimeout(resolve, 300));
    await client.config("SET", "maxmemory", "0");
    await run;
    await worker.stop();
    client.disconnect();
    expect(filesOf(out)).toEqual(filesOf(alone));
    expect(bookOf(out)).toEqual(bookOf(alone));
  });
});
