import { afterEach, describe, expect, it, vi } from "vitest";
import { openLedger } from "../../synth/ledger/ledger.ts";
import { readRunStatus } from "../../synth/ledger/read.ts";
import { synthConfigSchema } from "../../synth/pipeline/config.ts";
import { planSynth } from "../../synth/plan/plan.ts";
import { describeWithRedis, startRedis } from "../redis-server.ts";
import { bookOf, cleanUp, doneUnits, filesOf, freshRun, runIn, startWorker } from "./worker-setting.ts";

const HOUR = 3_600_000;
/** Forwards, backwards beyond the start, and forwards again. */
const JUMPS = [5 * HOUR, -12 * HOUR, 3 * HOUR];

afterEach(async () => {
  vi.useRealTimers();
  await cleanUp();
});

/** Sets this process's wall clock off by each jump in turn, whenever another unit is done; timers run on. */
async function jumping<T>(path: string, work: () => Promise<T>): Promise<{ readonly made: T; readonly jumps: number }> {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  let [jumps, seen] = [0, 0];
  const clock = setInterval(() => {
    const done = doneUnits(path);
    const jump = JUMPS[jumps % JUMPS.length] ?? 0;
    if (done > seen) {
      vi.setSystemTime(Date.now() + jump);
      jumps++;
    }
    seen = done;
  }, 5);
  try {
    return { made: await work(), jumps };
  } finally {
    clearInterval(clock);
    vi.useRealTimers();
  }
}

describe("a wall clock that jumps by hours", () => {
  it("leaves the status with rates that are none or not below zero, and with the right counts", () => {
    const path = freshRun();
    let now = Date.parse("2026-06-01");
    const folder = path.replace(/\/run$/u, "");
    const ledger = openLedger({
      file: `${folder}/ledger.sqlite`,
      lockFile: `${folder}/coordinator.lock`,
      coordinator: { host: "here", pid: process.pid, since: "now" },
      newRunId: () => "run-1",
      now: () => now,
    });
    const keys = Array.from({ length: 12 }, (_, index) => `unit-${index}`);
    ledger.register("search", keys);
    const cost = { calls: 1, promptTokens: 1, completionTokens: 1, nanos: 0 };
    for (const [at, key] of keys.entries()) {
      now += 1000 + (at % 3 === 0 ? (JUMPS[(at / 3) % JUMPS.length] ?? 0) : 0);
      ledger.end(ledger.lease("search", key), { state: "done", result: "{}", cost, worker: "w" }, []);
      ledger.sync();
      const [stage] = readRunStatus(folder).stages;
      expect(stage?.units.done).toBe(at + 1);
      for (const figure of [stage?.perSecond ?? 0, stage?.secondsLeft ?? 0]) {
        expect(Number.isFinite(figure) && figure >= 0).toBe(true);
      }
    }
    ledger.close();
  });

  it("changes no plan", async () => {
    const config = synthConfigSchema.parse({ tasks: { set: "chain", limit: 4 } });
    const plan = await planSynth(config, { latencyMs: 2000 });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 1000 * HOUR });
    const clock = setInterval(() => vi.setSystemTime(Date.now() + 7 * HOUR), 1);
    try {
      expect(await planSynth(config, { latencyMs: 2000 })).toEqual(plan);
    } finally {
      clearInterval(clock);
    }
  });

  it("changes no file and no booking of a run in one process", async () => {
    const [alone, out] = [freshRun(), freshRun()];
    await runIn(alone);
    const { jumps } = await jumping(out, () => runIn(out));
    expect(jumps).toBeGreaterThan(3);
    expect([filesOf(out), bookOf(out)]).toEqual([filesOf(alone), bookOf(alone)]);
  });
});

describeWithRedis("a wall clock that jumps by hours, with workers on a Redis", () => {
  // BullMQ renews a lock by the wall clock, so a unit whose worker's clock went back may be handed out again: it counts once.
  it("loses no unit and books none twice: the same files and bookings", async () => {
    const redis = await startRedis();
    try {
      const [alone, out] = [freshRun(), freshRun()];
      await runIn(alone);
      const { jumps } = await jumping(out, async () => {
        const workers = [startWorker(redis.url), startWorker(redis.url)];
        await runIn(out, { redis: redis.url });
        const tallies = await Promise.all(workers.map((worker) => worker.stop()));
        expect(tallies.reduce((sum, { failed, givenBack }) => sum + failed + givenBack, 0)).toBe(0);
      });
      expect(jumps).toBeGreaterThan(3);
      expect([filesOf(out), bookOf(out)]).toEqual([filesOf(alone), bookOf(alone)]);
    } finally {
      await cleanUp();
      await redis.stop();
    }
  }, 120_000);
});
