import { setMaxListeners } from "node:events";
import { type Job as BullJob, UnrecoverableError, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { asRootstepError, RootstepError } from "../../src/errors.ts";
import type { Kept } from "../ledger/kept.ts";
import { keptSchema, keyOfKept } from "../ledger/kept.ts";
import { failureOf, type JobOutcome, type WorkerInfo } from "../queue/queue.ts";
import {
  isFull,
  KEEP_SECONDS,
  KEY_PREFIX,
  openRedis,
  placeOf,
  QUEUE_NAME,
  redisKeys,
  requireUsableRedis,
} from "../queue/redis-connection.ts";
import { atMost } from "../queue/redis-queue.ts";
import { announceWorker, livingWorkers, withdrawWorker } from "../queue/redis-workers.ts";
import { type JobData, jobDataSchema } from "../queue/run-registration.ts";
import { reapSlots } from "../queue/shared-budget.ts";
import { withTimeLimit } from "../queue/work.ts";
import type { Executors } from "./unit-executors.ts";

export interface WorkerOptions {
  readonly url: string;
  /** How the work is done; `unitExecutors` for the units of synth runs. */
  readonly executors: (redis: Redis) => Executors;
  /** This worker: a new id each time, so that what a dead one has set aside can be told. */
  readonly info: WorkerInfo;
  /** Milliseconds after which a worker that says nothing counts as dead. */
  readonly leaseMs: number;
  /** Milliseconds one unit may take. */
  readonly limitMs: number;
  /** Milliseconds that units under way get to end when the worker is told to stop; then they are given back. */
  readonly graceMs: number;
  /** Told to stop: no new unit is begun. */
  readonly signal: AbortSignal;
  readonly note: (line: string) => void;
}

export interface WorkerTally {
  done: number;
  failed: number;
  givenBack: number;
}

/**
 * Works on the units of any run that is coordinated over this Redis, until the signal. It writes to Redis only: finished
 * parts as they come, and each unit's outcome for the coordinator to take into its ledger.
 *
 * @throws RootstepError REDIS_UNREACHABLE, REDIS_AUTH, REDIS_POLICY at the start
 */
export async function runWorker(options: WorkerOptions): Promise<WorkerTally> {
  const { url, info, leaseMs, signal, note } = options;
  await requireUsableRedis(url);
  const away = onceAway(note, placeOf(url));
  const redis = openRedis(url, away.gone);
  redis.on("ready", away.back);
  const tally: WorkerTally = { done: 0, failed: 0, givenBack: 0 };
  const giveBack = new AbortController();
  setMaxListeners(0, giveBack.signal);
  const executors = options.executors(redis);

  const work = async (job: BullJob): Promise<void> => {
    const outcome = await outcomeOf(job, { redis, executors, options, giveBack: giveBack.signal });
    await leaveOutcome(redis, job.id ?? "", outcome, giveBack.signal);
    if (outcome.kind === "done") tally.done++;
    if (outcome.kind !== "failed") return;
    const { failure } = outcome;
    if (failure.code === "INTERRUPTED") tally.givenBack++;
    else tally.failed++;
    // For whoever looks at the queue; the coordinator decides by the outcome.
    const said = `${failure.code}: ${failure.what}`;
    throw failure.retryable ? new Error(said) : new UnrecoverableError(said);
  };

  const worker = new Worker<JobData>(QUEUE_NAME, work, {
    name: info.id,
    connection: redis,
    prefix: KEY_PREFIX,
    concurrency: info.slots,
    lockDuration: leaseMs,
    stalledInterval: leaseMs,
    maxStalledCount: 0, // the coordinator hands a dead worker's unit out again, under a new fence
    removeOnComplete: { count: 100 },
    removeOnFail: { count: 100 },
    drainDelay: 1,
    runRetryDelay: 500,
  });
  worker.on("error", away.gone);

  let stopped = false;
  const announcing = (async () => {
    const everyMs = Math.min(5000, leaseMs / 3);
    while (!stopped) {
      try {
        await announceWorker(redis, info, 3 * everyMs + 1000);
        const living = new Set((await livingWorkers(redis)).map(({ id }) => id));
        for (const server of executors.servers()) await reapSlots(redis, server, living);
      } catch (error) {
        away.gone(error);
      }
      await sleep(everyMs, signal);
      if (signal.aborted) return;
    }
  })();

  await aborted(signal);
  stopped = true;
  await atMost(worker.pause(true), 2000);
  const closing = worker.close();
  await atMost(closing, options.graceMs);
  giveBack.abort(new RootstepError("INTERRUPTED", { what: "the worker was told to stop" }));
  await atMost(closing, 5000);
  await atMost(announcing, 1000);
  await atMost(withdrawWorker(redis, info.id), 1000);
  redis.disconnect();
  return tally;
}

interface WorkOn {
  readonly redis: Redis;
  readonly executors: Executors;
  readonly options: WorkerOptions;
  readonly giveBack: AbortSignal;
}

async function outcomeOf(job: BullJob, { redis, executors, options, giveBack }: WorkOn): Promise<JobOutcome> {
  const made: Kept[] = [];
  const worker = options.info.id;
  try {
    const data = readJob(job, options.info.version);
    const { run, stage, key } = data;
    const execute = withTimeLimit(await executors.executorOf(data), options.limitMs);
    const partsKey = redisKeys.parts(run, stage, key);
    // What earlier attempts left in Redis counts as made now: a coordinator that has it already takes it once, by key.
    made.push(...(await redis.hvals(partsKey)).map((part) => keptSchema.parse(JSON.parse(part))));
    const onPart = (part: Kept): void => {
      made.push(part);
      redis
        .multi()
        .hsetnx(partsKey, keyOfKept(part), JSON.stringify(part))
        .expire(partsKey, KEEP_SECONDS)
        .exec()
        .catch(() => undefined); // the outcome carries every part again
    };
    const unit = { id: job.id ?? "", stage, key, payload: data.payload, kept: [...data.kept, ...made] };
    const { record, cost } = await execute(unit, { signal: giveBack, onPart });
    return { kind: "done", record, cost, parts: made, worker };
  } catch (thrown) {
    return { kind: "failed", failure: failureOf(asRootstepError(thrown)), parts: made, worker };
  }
}

/** @throws RootstepError JOB_VERSION, JOB_UNREADABLE */
function readJob(job: BullJob, version: string): JobData {
  const where = `job ${job.id}`;
  const data: unknown = job.data;
  const theirs = typeof data === "object" && data !== null && "version" in data ? data.version : undefined;
  if (typeof theirs === "string" && theirs !== version) {
    const what = `the job was made by rootstep ${theirs}, this worker is ${version}`;
    throw new RootstepError("JOB_VERSION", { what, where });
  }
  const parsed = jobDataSchema.safeParse(data);
  if (parsed.success) return parsed.data;
  throw new RootstepError("JOB_UNREADABLE", { what: "the job has another shape than rootstep's", where });
}

/** Leaves an outcome for the coordinator. A full Redis is waited for: the work is done and paid. */
async function leaveOutcome(redis: Redis, id: string, outcome: JobOutcome, giveBack: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await redis.set(redisKeys.result(id), JSON.stringify(outcome), "EX", KEEP_SECONDS);
      return;
    } catch (error) {
      if (!isFull(error) || giveBack.aborted) throw error;
      await sleep(1000, giveBack);
    }
  }
}

function onceAway(note: (line: string) => void, where: string) {
  let away = false;
  return {
    gone(error: unknown) {
      if (!away) note(`Redis at ${where}: ${error instanceof Error ? error.message : error}; going on when it is back`);
      away = true;
    },
    back() {
      away = false;
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
    if (signal.aborted) done();
  });
}
