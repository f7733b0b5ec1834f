import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { isError } from "../../src/errors.ts";
import type { Budget } from "../../src/models/budget.ts";
import { redisKeys } from "../../synth/queue/redis-connection.ts";
import { reapReservations, reapSlots, type SharedLimits, sharedBudget } from "../../synth/queue/shared-budget.ts";
import { manualClock } from "../models/manual-clock.ts";
import { describeWithRedis, type RedisServer, startRedis } from "../redis-server.ts";

const USAGE = { promptTokens: 1, completionTokens: 1 };

describeWithRedis("caps and limits that workers share", () => {
  let server: RedisServer;
  let clients: Redis[] = [];
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    await connect().flushall();
  });
  afterEach(() => {
    for (const client of clients) client.disconnect();
    clients = [];
  });

  function connect(): Redis {
    const client = new Redis(server.url);
    clients.push(client);
    return client;
  }

  /** As many workers, each with a connection of its own. */
  const workers = (count: number, limits: Partial<SharedLimits>): Budget[] =>
    Array.from({ length: count }, (_, index) =>
      sharedBudget(connect(), { budget: "budget", caps: {}, worker: `worker-${index}`, newId: randomUUID, ...limits }),
    );

  it("let through as many calls as the cap says and not one more, however many ask at once", async () => {
    const all = workers(4, { caps: { maxCalls: 50 } });
    const settled = await Promise.allSettled(Array.from({ length: 80 }, (_, i) => all[i % 4]?.reserve(undefined)));
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(50);
    for (const result of settled)
      if (result.status === "rejected") expect(isError(result.reason, "BUDGET_REACHED")).toBe(true);
  });

  it("never set aside more money than the cap; what fits once others settle waits for them", async () => {
    const [a, b] = workers(2, { caps: { maxCost: 1 } });
    const first = await a?.reserve(0.6);
    let done = false;
    const second = b?.reserve(0.6).then((reservation) => {
      done = true;
      return reservation;
    });
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(done).toBe(false);
    first?.settle({ usage: USAGE, cost: 0.1 });
    (await second)?.settle({ usage: USAGE, cost: 0.35 });
    await new Promise((resolve) => setTimeout(resolve, 100));
    await expect(a?.reserve(0.6)).rejects.toMatchObject({
      code: "BUDGET_REACHED",
      what: "The next model call may cost 0.6; 0.45 of 1 are spent",
    });
    await a?.reserve(0.55);
  });

  it("count a call without a usage with its estimate, and one that no server bills not at all", async () => {
    const [a] = workers(1, { caps: { maxCost: 1 } });
    (await a?.reserve(0.5))?.settle("not billed");
    (await a?.reserve(0.5))?.settle({ usage: undefined, cost: undefined });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await connect().hgetall("budget")).toMatchObject({ nanos: "500000000", reserved: "0", unmetered: "1" });
  });

  it("book what a dead worker has set aside as spent, once, and free its slot", async () => {
    const client = connect();
    const model = { id: "m", concurrency: 1 };
    const [a, b] = workers(2, { caps: { maxCost: 1 }, server: model });
    const held = await a?.reserve(0.7);
    const living = new Set(["worker-1"]);
    await reapReservations(client, "budget", living);
    await reapReservations(client, "budget", living);
    await reapSlots(client, "m", living);
    await expect(b?.reserve(0.5)).rejects.toMatchObject({ code: "BUDGET_REACHED" });
    await b?.reserve(0.2); // the slot is free
    held?.settle({ usage: USAGE, cost: 0.01 }); // it was not dead after all: too late
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await client.hget("budget", "nanos")).toBe("700000000");
  });

  it("never have more calls under way on one server than it may have", async () => {
    const all = workers(3, { server: { id: "m", concurrency: 5 } });
    let [underWay, most, made] = [0, 0, 0];
    await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        const reservation = await all[index % 3]?.reserve(undefined);
        underWay++;
        most = Math.max(most, underWay);
        await new Promise((resolve) => setTimeout(resolve, 2));
        underWay--;
        made++;
        reservation?.settle({ usage: USAGE, cost: undefined });
      }),
    );
    expect([made, most]).toEqual([60, 5]);
    expect(await connect().hlen(redisKeys.slots("m"))).toBe(0);
  });

  it("begin no more calls within a minute than the server allows; the next is told how long to wait", async () => {
    const clock = manualClock();
    const all = workers(3, { server: { id: "m", concurrency: 100, requestsPerMinute: 20 }, clock });
    await Promise.all(Array.from({ length: 20 }, (_, index) => all[index % 3]?.reserve(undefined)));
    const stop = new AbortController();
    const next = all[0]?.reserve(undefined, stop.signal);
    await clock.sleeping(1);
    expect(clock.waits[0]).toBeGreaterThan(30_000);
    expect(clock.waits[0]).toBeLessThanOrEqual(60_000);
    stop.abort();
    await expect(next).rejects.toMatchObject({ code: "INTERRUPTED" });
  });

  it("count a reservation once though its command was sent twice", async () => {
    const client = connect();
    const [a] = workers(1, { caps: { maxCalls: 10 }, newId: () => "same" });
    await a?.reserve(undefined);
    await a?.reserve(undefined); // what a connection does that broke after the command was carried out
    expect(await client.hget("budget", "calls")).toBe("1");
  });
});
