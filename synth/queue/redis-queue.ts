import { Queue, QueueEvents } from "bullmq";
import type { Redis } from "ioredis";
import type { z } from "zod";
import type { RootstepError } from "../../src/errors.ts";
import { keptSchema } from "../ledger/kept.ts";
import { createOutcomeBuffer } from "./outcome-buffer.ts";
import { type Job, type JobOutcome, type JobQueue, jobOutcomeSchema, type WorkerInfo } from "./queue.ts";
import {
  isFull,
  KEEP_SECONDS,
  KEY_PREFIX,
  openRedis,
  placeOf,
  QUEUE_NAME,
  redisError,
  redisKeys,
  requireUsableRedis,
} from "./redis-connection.ts";
import { livingWorkers } from "./redis-workers.ts";
import type { JobData, RunRegistration } from "./run-registration.ts";
import { reapReservations } from "./shared-budget.ts";

export interface RedisQueueOptions {
  readonly url: string;
  readonly version: string;
  readonly run: string;
  readonly epoch: number;
  readonly registration: RunRegistration;
  /** Hears when Redis or all workers are away, once each time. */
  readonly note: (line: string) => void;
  readonly onWorkers: (workers: readonly WorkerInfo[]) => void;
  /** Milliseconds between two looks at jobs of which no event has come. */
  readonly sweepMs?: number;
}

/** Looks at a full Redis, with nothing under way that could make room, before the coordinator gives up. */
const LOOKS_WHILE_FULL = 10;
const LEAST_WINDOW = 8;

/**
 * Units as BullMQ jobs. BullMQ hands them out and notices dead workers; attempts, waits and fences are the coordinator's,
 * so every job has one attempt, and its outcome lies under a key of its own until the ledger has it. Events only wake:
 * a job whose event was lost (a restart of Redis, of the coordinator) is found by the sweep.
 *
 * @throws RootstepError REDIS_UNREACHABLE, REDIS_AUTH, REDIS_POLICY
 */
export async function redisQueue(options: RedisQueueOptions): Promise<JobQueue> {
  const { url, run, epoch, version, sweepMs = 500 } = options;
  const where = placeOf(url);
  await requireUsableRedis(url);
  const away = awayNotes(options.note, where);
  const redis = openRedis(url, away.gone);
  redis.on("ready", away.back);
  const registered = JSON.stringify(options.registration);
  const connection = { connection: redis, prefix: KEY_PREFIX };
  const queue = new Queue<JobData>(QUEUE_NAME, { ...connection, streams: { events: { maxLen: 1000 } } });
  const events = new QueueEvents(QUEUE_NAME, connection);
  queue.on("error", away.gone);
  events.on("error", away.gone);

  const ended = createOutcomeBuffer();
  const backlog: Job[] = [];
  const inFlight = new Map<string, Job>();
  let slots = 0;
  let looksWhileFull = 0;
  let fatal: RootstepError | undefined;
  let closed = false;
  let poke = (): void => {};

  /** Ended, and not in the ledger yet. */
  const unsettled = new Map<string, { readonly job: Job; readonly done: boolean }>();
  const end = (id: string, outcome: JobOutcome): void => {
    const job = inFlight.get(id);
    if (job === undefined) return;
    inFlight.delete(id);
    unsettled.set(id, { job, done: outcome.kind === "done" });
    ended.put({ id, outcome });
  };

  /** Takes the outcomes that workers have left for these jobs. */
  const collect = async (ids: readonly string[]): Promise<void> => {
    if (ids.length === 0) return;
    const results = await redis.mget(ids.map(redisKeys.result));
    ids.forEach((id, index) => {
      const result = results[index];
      if (result !== null && result !== undefined) end(id, jobOutcomeSchema.parse(JSON.parse(result)));
    });
  };

  const flush = async (): Promise<void> => {
    while (backlog.length > 0 && !closed) {
      const jobs = backlog.slice(0, 16);
      const registration = redisKeys.run(run, epoch);
      // Sent once, and again to a Redis that has forgotten it: with a user's own tasks it may be large.
      if ((await redis.expire(registration, KEEP_SECONDS)) === 0) {
        await redis.set(registration, registered, "EX", KEEP_SECONDS);
      }
      await queue.addBulk(
        jobs.map(({ id, stage, key, payload, kept }) => ({
          name: stage,
          data: { version, run, epoch, stage, key, payload, kept: [...kept] },
          opts: { jobId: id, attempts: 1 },
        })),
      );
      for (const job of backlog.splice(0, jobs.length)) inFlight.set(job.id, job);
      looksWhileFull = 0;
    }
  };

  /** Finds the jobs that have ended unheard, died with their worker, or are forgotten. */
  const sweep = async (): Promise<void> => {
    const ids = [...inFlight.keys()];
    // States first: a job that ends between the two looks has its result by the second.
    const states = await Promise.all(ids.map((id) => queue.getJobState(id)));
    await collect(ids);
    for (const [index, id] of ids.entries()) {
      const job = inFlight.get(id);
      if (job === undefined) continue;
      const state = states[index];
      if (state !== "failed" && state !== "unknown" && state !== "completed") continue;
      const workerDied = state === "failed";
      const reason = workerDied ? "its worker died or lost touch with Redis" : "Redis has forgotten the job";
      end(id, { kind: "lost", reason, workerDied, parts: await partsOf(redis, run, job) });
    }
  };

  const look = async (): Promise<void> => {
    try {
      await flush();
      await sweep();
      const workers = await livingWorkers(redis);
      slots = workers.reduce((sum, worker) => sum + worker.slots, 0);
      away.workers(inFlight.size > 0 && workers.length === 0);
      options.onWorkers(workers);
      await reapReservations(redis, redisKeys.budget(run, epoch), new Set(workers.map(({ id }) => id)));
    } catch (error) {
      if (closed) return;
      if (isFull(error)) {
        away.full();
        // Jobs under way free memory when they end.
        if (inFlight.size === 0 && ++looksWhileFull >= LOOKS_WHILE_FULL) fatal = redisError(error, where);
      } else if (isConnectionFailure(error)) away.gone(error);
      else fatal = redisError(error, where);
      if (fatal !== undefined) ended.wake();
    }
  };

  const looking = (async () => {
    while (!closed) {
      await look();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, sweepMs);
        poke = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  })();
  const onEnded = ({ jobId }: { readonly jobId: string }): void => {
    if (inFlight.has(jobId)) collect([jobId]).catch(away.gone);
  };
  events.on("completed", onEnded);
  events.on("failed", onEnded);

  return {
    window: () => Math.max(LEAST_WINDOW, 2 * slots),
    async submit(jobs) {
      const isNew = ({ id }: Job): boolean => !inFlight.has(id) && !backlog.some((other) => other.id === id);
      backlog.push(...jobs.filter(isNew));
      poke();
    },
    async take(atMostMs, signal) {
      const taken = await ended.take(atMostMs, signal);
      if (taken.length === 0 && fatal !== undefined) throw fatal;
      return taken;
    },
    async settle(id) {
      // Not waited for: a Redis that is away must not hold the coordinator up, and what stays behind expires.
      const settled = unsettled.get(id);
      unsettled.delete(id);
      const parts = settled?.done === true ? [redisKeys.parts(run, settled.job.stage, settled.job.key)] : [];
      redis.del(redisKeys.result(id), ...parts).catch(away.gone);
    },
    async stop() {
      backlog.length = 0;
      // Jobs with a worker are locked and stay; the others would be worked on for nobody.
      const withdrawn = Promise.all([...inFlight.keys()].map((id) => queue.remove(id).catch(() => 0)));
      await atMost(withdrawn, 2000);
    },
    workers: () => livingWorkers(redis),
    async close() {
      closed = true;
      poke();
      await atMost(Promise.all([events.close(), queue.close()]), 2000);
      redis.disconnect();
      await atMost(looking, 2000);
    },
  };
}

async function partsOf(redis: Redis, run: string, { stage, key }: Job): Promise<z.infer<typeof keptSchema>[]> {
  const parts = await redis.hvals(redisKeys.parts(run, stage, key));
  return parts.map((part) => keptSchema.parse(JSON.parse(part)));
}

/** Says once that something is away, and once that it is back. */
function awayNotes(note: (line: string) => void, where: string) {
  let redisAway = false;
  let workersAway = false;
  let isFullNow = false;
  return {
    gone(error: unknown) {
      if (!redisAway)
        note(`Redis at ${where} is away (${error instanceof Error ? error.message : error}); waiting for it`);
      redisAway = true;
    },
    back() {
      if (redisAway) note(`Redis at ${where} is back`);
      redisAway = false;
    },
    full() {
      if (!isFullNow) note(`Redis at ${where} is full; waiting for jobs under way to make room`);
      isFullNow = true;
    },
    workers(none: boolean) {
      if (none && !workersAway) note(`no worker on ${where}; start some with: rootstep worker --redis URL`);
      workersAway = none;
    },
  };
}

function isConnectionFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? String(error.code) : "";
  return (
    /^E[A-Z]+$/u.test(code) ||
    /Connection is closed|LOADING|MASTERDOWN|READONLY|MISCONF|Stream isn't writeable/u.test(error.message)
  );
}

/** Waits for a farewell, but not for ever. */
export async function atMost(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const enough = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise.catch(() => undefined), enough]);
  clearTimeout(timer);
}
