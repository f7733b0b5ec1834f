import { afterEach, describe, expect, it } from "vitest";
import { RootstepError } from "../../src/errors.ts";
import { NO_COST } from "../../synth/ledger/cost.ts";
import type { EndedJob, Job, JobQueue } from "../../synth/queue/queue.ts";
import type { ExecuteJob } from "../../synth/queue/work.ts";

export interface QueueUnderTest {
  readonly queue: JobQueue;
  close(): Promise<void>;
}

/** Opens a queue whose jobs are done by `execute`, two at a time. */
export type OpenQueue = (execute: ExecuteJob) => Promise<QueueUnderTest>;

const job = (name: string, more: Partial<Job> = {}): Job => ({
  id: `run-search-${name}-f1`,
  stage: "search",
  key: name,
  payload: { name },
  kept: [],
  ...more,
});

/** What every queue must do for the coordinator. */
export function queueConformance(name: string, open: OpenQueue): void {
  describe(`queue ${name}`, () => {
    const opened: QueueUnderTest[] = [];
    const queueFor = async (execute: ExecuteJob): Promise<JobQueue> => {
      const under = await open(execute);
      opened.push(under);
      return under.queue;
    };
    afterEach(async () => {
      for (const under of opened.splice(0)) await under.close();
    });

    /** Takes until so many jobs have ended. */
    const take = async (queue: JobQueue, count: number): Promise<EndedJob[]> => {
      const ended: EndedJob[] = [];
      while (ended.length < count) ended.push(...(await queue.take(1000)));
      for (const { id } of ended) await queue.settle(id);
      return ended;
    };
    const echo: ExecuteJob = async ({ payload }) => ({ record: payload, cost: { ...NO_COST, calls: 1 } });

    it("does every job, hands payloads over as they are, and gives records and costs back", async () => {
      const queue = await queueFor(echo);
      const jobs = ["a", "b", "c", "d", "e"].map((key) => job(key, { payload: { key, deep: [1, { two: "zwei" }] } }));
      await queue.submit(jobs);
      const ended = await take(queue, 5);
      expect(ended.map(({ id }) => id).sort()).toEqual(jobs.map(({ id }) => id).sort());
      for (const { id, outcome } of ended) {
        const given = jobs.find((other) => other.id === id);
        expect(outcome).toMatchObject({ kind: "done", record: given?.payload, cost: { calls: 1 }, parts: [] });
      }
    });

    it("does a job once though it is submitted again while it waits or runs", async () => {
      let begun = 0;
      let release = (): void => {};
      const gate = new Promise<void>((resolve) => {
        release = resolve;
      });
      const queue = await queueFor(async (given, options) => {
        begun++;
        await gate;
        return echo(given, options);
      });
      const jobs = ["a", "b", "c"].map((key) => job(key));
      await queue.submit(jobs);
      await queue.submit(jobs);
      while (begun < 2) await new Promise((resolve) => setTimeout(resolve, 5));
      await queue.submit(jobs);
      release();
      expect(await take(queue, 3)).toHaveLength(3);
      expect(await queue.take(300)).toEqual([]);
      expect(begun).toBe(3);
    });

    it("passes on what earlier attempts have finished, and reports what this one finishes, also when it fails", async () => {
      const probe = (replicate: number) =>
        ({
          kind: "probe",
          trajectory: "t",
          step: 0,
          arm: "control",
          edit: "recorded",
          replicate,
          success: true,
          liveCalls: 1,
          cost: { ...NO_COST, calls: 1 },
        }) as const;
      const queue = await queueFor(async ({ kept, key }, { onPart }) => {
        if (kept.length > 0) return { record: kept, cost: NO_COST };
        onPart(probe(1));
        throw new RootstepError("MODEL_TIMEOUT", { what: `no answer for ${key}` });
      });
      await queue.submit([job("with", { kept: [probe(0)] }), job("without")]);
      const ended = await take(queue, 2);
      const outcomeOf = (key: string) => ended.find(({ id }) => id.includes(`-${key}-`))?.outcome;
      expect(outcomeOf("with")).toMatchObject({ kind: "done", record: [probe(0)] });
      expect(outcomeOf("without")).toMatchObject({ kind: "failed", parts: [probe(1)] });
    });

    it("tells code, reason, whether another try can help, and how long the server asked to wait", async () => {
      const queue = await queueFor(async ({ key }) => {
        if (key === "limited") throw new RootstepError("MODEL_RATE_LIMITED", { what: "slow down", retryAfterMs: 2500 });
        if (key === "diverged")
          throw new RootstepError("REPLAY_DIVERGED", { what: "asked otherwise", where: "call 3" });
        throw new TypeError("a fault of ours");
      });
      await queue.submit([job("limited"), job("diverged"), job("broken")]);
      const ended = await take(queue, 3);
      const failureOf = (key: string) => {
        const outcome = ended.find(({ id }) => id.includes(`-${key}-`))?.outcome;
        return outcome?.kind === "failed" ? outcome.failure : outcome;
      };
      expect(failureOf("limited")).toMatchObject({ code: "MODEL_RATE_LIMITED", retryable: true, retryAfterMs: 2500 });
      expect(failureOf("diverged")).toMatchObject({ code: "REPLAY_DIVERGED", retryable: false, where: "call 3" });
      expect(failureOf("broken")).toMatchObject({ code: "INTERNAL", what: "a fault of ours" });
    });

    it("returns from waiting when nothing ends, and at once when the signal is raised", async () => {
      const queue = await queueFor(echo);
      expect(await queue.take(10)).toEqual([]);
      const stop = new AbortController();
      const waiting = queue.take(600_000, stop.signal);
      stop.abort();
      expect(await waiting).toEqual([]);
    });

    it("begins no job after it was stopped", async () => {
      const begun: string[] = [];
      let release = (): void => {};
      const gate = new Promise<void>((resolve) => {
        release = resolve;
      });
      const queue = await queueFor(async (given, options) => {
        begun.push(given.key);
        await gate;
        return echo(given, options);
      });
      await queue.submit(["a", "b", "c", "d", "e", "f"].map((key) => job(key)));
      while (begun.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
      const stopped = queue.stop();
      release();
      await stopped;
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(begun.length).toBeLessThan(6);
      const before = begun.length;
      await queue.take(100);
      expect(begun).toHaveLength(before);
    });
  });
}
