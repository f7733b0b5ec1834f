import type { Redis } from "ioredis";
import { type WorkerInfo, workerInfoSchema } from "./queue.ts";
import { redisKeys } from "./redis-connection.ts";

/** Says that a worker lives, for so many milliseconds. */
export async function announceWorker(redis: Redis, worker: WorkerInfo, forMs: number): Promise<void> {
  await redis.set(redisKeys.worker(worker.id), JSON.stringify(worker), "PX", forMs);
  await redis.sadd(redisKeys.workers, worker.id);
}

export async function withdrawWorker(redis: Redis, id: string): Promise<void> {
  await redis.del(redisKeys.worker(id));
  await redis.srem(redisKeys.workers, id);
}

/** The workers that have said so lately; the names of others are swept out. */
export async function livingWorkers(redis: Redis): Promise<WorkerInfo[]> {
  const ids = await redis.smembers(redisKeys.workers);
  if (ids.length === 0) return [];
  const told = await redis.mget(ids.map(redisKeys.worker));
  const dead = ids.filter((_, index) => told[index] === null);
  if (dead.length > 0) await redis.srem(redisKeys.workers, ...dead);
  return told.flatMap((text) => (text === null ? [] : [workerInfoSchema.parse(JSON.parse(text))]));
}
