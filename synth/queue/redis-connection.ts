import { Redis } from "ioredis";
import { RootstepError } from "../../src/errors.ts";

/** Every key of ours; the braces keep them on one node of a cluster, so that scripts may touch several. */
export const KEY_PREFIX = "{rootstep}";
export const QUEUE_NAME = "units";

/** Results, parts and registrations that nobody fetches go away after a week. */
export const KEEP_SECONDS = 7 * 24 * 3600;

export const redisKeys = {
  /** What workers must know of a run: version, configuration, caps. */
  run: (run: string, epoch: number) => `${KEY_PREFIX}:run:${run}:${epoch}`,
  /** Outcome of a job, until the coordinator has it in its ledger. */
  result: (job: string) => `${KEY_PREFIX}:result:${job}`,
  /** Finished parts of a unit, whatever job made them. */
  parts: (run: string, stage: string, key: string) => `${KEY_PREFIX}:parts:${run}:${stage}:${key}`,
  workers: `${KEY_PREFIX}:workers`,
  worker: (id: string) => `${KEY_PREFIX}:worker:${id}`,
  /** What an invocation of a run has spent and set aside. */
  budget: (run: string, epoch: number) => `${KEY_PREFIX}:budget:${run}:${epoch}`,
  /** Calls under way on a model server, and the times at which calls began. */
  slots: (server: string) => `${KEY_PREFIX}:slots:${server}`,
  starts: (server: string) => `${KEY_PREFIX}:starts:${server}`,
} as const;

/** Where a Redis is, without user name and password. */
export function placeOf(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    return `${protocol}//${host}${pathname}`;
  } catch {
    return "the Redis URL";
  }
}

/**
 * Checks once that a Redis can be used, before anything is entrusted to it.
 *
 * @throws RootstepError REDIS_UNREACHABLE, REDIS_AUTH, REDIS_POLICY (it may evict what is entrusted to it), USAGE (no URL)
 */
export async function requireUsableRedis(url: string): Promise<void> {
  const where = placeOf(url);
  if (!/^rediss?:\/\//u.test(url)) {
    throw new RootstepError("USAGE", { what: "a Redis URL begins with redis:// or rediss://", where });
  }
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 5000,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let connection: unknown;
  redis.on("error", (error: unknown) => {
    connection = error;
  });
  try {
    await redis.connect();
    // Some services forbid CONFIG; INFO tells the policy everywhere.
    const policy = /^maxmemory_policy:(.+)\r?$/mu.exec(await redis.info("memory"))?.[1]?.trim();
    if (policy !== "noeviction") {
      throw new RootstepError("REDIS_POLICY", {
        what: `Redis has maxmemory-policy ${policy ?? "of an unknown kind"}`,
        where,
      });
    }
  } catch (error) {
    throw redisError(connection ?? error, where);
  } finally {
    redis.disconnect();
  }
}

/** A connection that waits for its Redis to come back, however long that takes. */
export function openRedis(url: string, onAway: (error: Error) => void): Redis {
  const redis = new Redis(url, {
    maxRetriesPerRequest: null,
    retryStrategy: (times) => Math.min(1000, 50 * times),
  });
  redis.on("error", onAway);
  return redis;
}

/** What a failure of Redis means for the reader. */
export function redisError(error: unknown, where: string): RootstepError {
  if (error instanceof RootstepError) return error;
  const text = error instanceof Error ? error.message : String(error);
  const details = { where, cause: error };
  if (/\b(NOAUTH|WRONGPASS|NOPERM)\b|invalid password/u.test(text)) {
    return new RootstepError("REDIS_AUTH", { ...details, what: "Redis refuses the user name or password" });
  }
  if (isFull(error)) return new RootstepError("REDIS_FULL", { ...details, what: "Redis is full (maxmemory reached)" });
  return new RootstepError("REDIS_UNREACHABLE", { ...details, what: "Redis cannot be reached" });
}

export function isFull(error: unknown): boolean {
  return error instanceof Error && /\bOOM\b/u.test(error.message);
}
