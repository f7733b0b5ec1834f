import type { Redis } from "ioredis";
import { RootstepError } from "../../src/errors.ts";
import { throwIfInterrupted } from "../../src/interruption.ts";
import type { Budget, BudgetOptions, CallOutcome, Reservation } from "../../src/models/budget.ts";
import { type Clock, systemClock } from "../../src/models/clock.ts";
import { KEEP_SECONDS, redisKeys } from "./redis-connection.ts";

/** Caps and limits that all workers keep together. */
export interface SharedLimits {
  /** Key of the invocation's budget. */
  readonly budget: string;
  readonly caps: Pick<BudgetOptions, "maxCalls" | "maxCost">;
  /** The model server's own limits, whichever runs use it; absent for the simulator. */
  readonly server?: {
    readonly id: string;
    readonly concurrency: number;
    readonly requestsPerMinute?: number | undefined;
  };
  /** Who reserves: what a dead worker has set aside is booked as spent. */
  readonly worker: string;
  readonly newId: () => string;
  readonly clock?: Clock;
}

const WAIT_MS = 50;

// Every script is safe to run twice with the same reservation: a connection that breaks sends its commands again.

/** One slot on the server and one start within the minute, both or none. Returns 0, or milliseconds to wait. */
const ENTER = `
local slots, starts = KEYS[1], KEYS[2]
local id, worker, most, perMinute = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if redis.call('HEXISTS', slots, id) == 1 then return 0 end
if redis.call('HLEN', slots) >= most then return ${WAIT_MS} end
if perMinute > 0 then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZREMRANGEBYSCORE', starts, '-inf', now - 60000)
  if redis.call('ZCARD', starts) >= perMinute then
    local oldest = redis.call('ZRANGE', starts, 0, 0, 'WITHSCORES')
    return math.max(1, math.ceil(oldest[2] + 60000 - now))
  end
  redis.call('ZADD', starts, now, id)
  redis.call('PEXPIRE', starts, 61000)
end
redis.call('HSET', slots, id, worker)
redis.call('EXPIRE', slots, ${KEEP_SECONDS})
return 0`;

/** Sets one call and its estimate aside. Returns 'ok', 'wait', 'calls' or the money already spent. */
const RESERVE = `
local spent, open = KEYS[1], KEYS[1] .. ':open'
local id, worker, estimate = ARGV[1], ARGV[2], tonumber(ARGV[3])
local maxCalls, maxNanos = tonumber(ARGV[4]), tonumber(ARGV[5])
if redis.call('HEXISTS', open, id) == 1 then return 'ok' end
local function of(field) return tonumber(redis.call('HGET', spent, field) or '0') end
if maxCalls >= 0 and of('calls') >= maxCalls then return 'calls' end
if maxNanos >= 0 and of('nanos') + of('reserved') + estimate > maxNanos then
  if redis.call('HLEN', open) == 0 or of('nanos') + estimate > maxNanos then
    return string.format('%.0f', of('nanos'))
  end
  return 'wait'
end
redis.call('HINCRBY', spent, 'calls', 1)
redis.call('HINCRBY', spent, 'reserved', ARGV[3])
redis.call('HSET', open, id, ARGV[3] .. ' ' .. worker)
redis.call('EXPIRE', spent, ${KEEP_SECONDS})
redis.call('EXPIRE', open, ${KEEP_SECONDS})
return 'ok'`;

/** Replaces an estimate by what the call took: ARGV[2] is its nanos, 'estimate' or 'nothing'. */
const SETTLE = `
local spent, open = KEYS[1], KEYS[1] .. ':open'
local reservation = redis.call('HGET', open, ARGV[1])
if not reservation then return 0 end
redis.call('HDEL', open, ARGV[1])
local estimate = string.match(reservation, '^%d+')
redis.call('HINCRBY', spent, 'reserved', '-' .. estimate)
if ARGV[2] == 'nothing' then return 1 end
local isKnown = ARGV[2] ~= 'estimate'
redis.call('HINCRBY', spent, 'nanos', isKnown and ARGV[2] or estimate)
if not isKnown then redis.call('HINCRBY', spent, 'unmetered', 1) end
return 1`;

/**
 * A budget and the limits of a model server, kept in Redis: whatever the number of workers, their calls together never
 * exceed the caps, the server's calls at the same time, or its calls per minute (by Redis's clock).
 */
export function sharedBudget(redis: Redis, limits: SharedLimits): Budget {
  const { caps, server, worker, budget, newId, clock = systemClock } = limits;
  const local = { calls: 0, promptTokens: 0, completionTokens: 0, cost: undefined, unmeteredCalls: 0 };
  const slots = server === undefined ? undefined : redisKeys.slots(server.id);

  const enter = async (id: string, signal: AbortSignal | undefined): Promise<void> => {
    if (server === undefined || slots === undefined) return;
    const { concurrency, requestsPerMinute = 0 } = server;
    for (;;) {
      throwIfInterrupted(signal);
      const starts = redisKeys.starts(server.id);
      const wait = Number(await redis.eval(ENTER, 2, slots, starts, id, worker, concurrency, requestsPerMinute));
      if (wait === 0) return;
      await clock.sleep(wait, signal);
    }
  };
  const leave = async (id: string): Promise<void> => {
    if (slots !== undefined) await redis.hdel(slots, id);
  };

  const setAside = async (id: string, estimate: number, signal: AbortSignal | undefined): Promise<void> => {
    const [maxCalls, maxNanos] = [caps.maxCalls ?? -1, caps.maxCost === undefined ? -1 : nanosOf(caps.maxCost)];
    if (maxCalls < 0 && maxNanos < 0) return;
    for (;;) {
      throwIfInterrupted(signal);
      const answer = await redis.eval(RESERVE, 1, budget, id, worker, estimate, maxCalls, maxNanos);
      if (answer === "ok") return;
      if (answer === "calls") {
        throw new RootstepError("BUDGET_REACHED", { what: `All ${maxCalls} model calls of the budget are used` });
      }
      if (answer !== "wait") {
        const what = `The next model call may cost ${estimate / 1e9}; ${Number(answer) / 1e9} of ${caps.maxCost} are spent`;
        throw new RootstepError("BUDGET_REACHED", { what });
      }
      await clock.sleep(WAIT_MS, signal);
    }
  };

  return {
    options: caps,
    spent: () => local,
    async reserve(cost, signal): Promise<Reservation> {
      const id = `${worker}/${newId()}`;
      await enter(id, signal);
      try {
        await setAside(id, nanosOf(cost ?? 0), signal);
      } catch (error) {
        await leave(id);
        throw error;
      }
      return {
        settle(outcome) {
          // Settling is not waited for; a Redis that is away gets it when it is back.
          const settled = redis.eval(SETTLE, 1, budget, id, settlement(outcome));
          Promise.all([settled, leave(id)]).catch(() => undefined);
        },
      };
    },
  };
}

function settlement(outcome: CallOutcome | "not billed"): string {
  if (outcome === "not billed") return "nothing";
  if (outcome.usage === undefined) return "estimate";
  return String(nanosOf(outcome.cost ?? 0));
}

const nanosOf = (amount: number): number => Math.round(amount * 1e9);

/** Books what dead workers have set aside as spent (a server may bill it), and frees their slots. */
export async function reapReservations(redis: Redis, budget: string, living: ReadonlySet<string>): Promise<void> {
  const open = await redis.hgetall(`${budget}:open`);
  for (const [id, reservation] of Object.entries(open)) {
    if (!living.has(reservation.split(" ")[1] ?? "")) await redis.eval(SETTLE, 1, budget, id, "estimate");
  }
}

/** @param server id of the model server, as in `SharedLimits` */
export async function reapSlots(redis: Redis, server: string, living: ReadonlySet<string>): Promise<void> {
  const slots = await redis.hgetall(redisKeys.slots(server));
  const left = Object.entries(slots).flatMap(([id, worker]) => (living.has(worker) ? [] : [id]));
  if (left.length > 0) await redis.hdel(redisKeys.slots(server), ...left);
}
