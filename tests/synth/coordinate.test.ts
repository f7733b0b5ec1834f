import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { type ErrorCode, RootstepError } from "../../src/errors.ts";
import { stream } from "../../src/random.ts";
import { silentProgress } from "../../src/runs/progress.ts";
import { openRunFolder, type RunFolder } from "../../src/runs/run-folder.ts";
import { NO_COST } from "../../synth/ledger/cost.ts";
import type { Ledger } from "../../synth/ledger/ledger.ts";
import { readRunStatus } from "../../synth/ledger/read.ts";
import { runStage } from "../../synth/pipeline/coordinate.ts";
import type { UnitStage } from "../../synth/pipeline/unit-stage.ts";
import { MAX_ATTEMPTS, MAX_LOSSES } from "../../synth/queue/failure-policy.ts";
import { createOutcomeBuffer } from "../../synth/queue/outcome-buffer.ts";
import { failureOf, type Job, type JobOutcome, type JobQueue } from "../../synth/queue/queue.ts";
import { openRunLedger } from "../../synth/synthesize.ts";

const schema = z.strictObject({ key: z.string(), value: z.number() });
type Row = z.infer<typeof schema>;

const stage: UnitStage<Row, Row> = {
  id: "square",
  title: "square",
  file: "squares.jsonl",
  payload: schema,
  record: schema,
  keyOf: ({ key }) => key,
  keyOfRecord: ({ key }) => key,
  work: async ({ key, value }) => ({ key, value: value * value }),
};
const payloads = Array.from({ length: 9 }, (_, value) => ({ key: `unit ${value}`, value }));
const expected = payloads.map(({ key, value }) => `${JSON.stringify({ key, value: value * value })}\n`).join("");

type Answer = (job: Job, attempt: number) => JobOutcome;

const done = ({ key, payload }: Job): JobOutcome => {
  const { value } = schema.parse(payload);
  return {
    kind: "done",
    record: { key, value: value * value },
    cost: { ...NO_COST, calls: value },
    parts: [],
    worker: "w",
  };
};
const failed = (code: ErrorCode): JobOutcome => ({
  kind: "failed",
  failure: failureOf(new RootstepError(code, { what: "a reason" })),
  parts: [],
  worker: "w",
});
const lost = (workerDied: boolean): JobOutcome => ({ kind: "lost", reason: "gone", workerDied, parts: [] });

/** A queue that answers as told, in a random order, and sometimes twice. */
function toldQueue(answer: Answer, seed = 1): JobQueue & { readonly submitted: string[] } {
  const random = stream(seed, "told queue");
  const ended = createOutcomeBuffer();
  const attempts = new Map<string, number>();
  const submitted: string[] = [];
  return {
    submitted,
    window: () => 4,
    async submit(jobs) {
      for (const job of random.shuffle(jobs)) {
        submitted.push(job.id);
        const attempt = (attempts.get(job.key) ?? 0) + 1;
        attempts.set(job.key, attempt);
        const outcome = answer(job, attempt);
        ended.put({ id: job.id, outcome });
        if (random.chance(0.5)) ended.put({ id: job.id, outcome });
      }
    },
    take: (atMostMs, signal) => ended.take(atMostMs, signal),
    settle: async () => {},
    stop: async () => {},
    workers: async () => [],
    close: async () => {},
  };
}

const folders: { readonly folder: RunFolder; ledger: Ledger }[] = [];
afterEach(() => {
  for (const { folder, ledger } of folders.splice(0)) {
    ledger.close();
    rmSync(dirname(folder.path), { recursive: true, force: true });
  }
});

function fresh() {
  const path = join(mkdtempSync(join(tmpdir(), "rootstep-coordinate-")), "run");
  const folder = openRunFolder({ path, kind: "synth", version: "test", settings: {}, now: () => new Date(0) });
  const here = { folder, ledger: openRunLedger(path, () => new Date(0)) };
  folders.push(here);
  // Waits for another try pass at once: every look at the clock is an hour later.
  let hours = 0;
  const run = (answer: Answer, seed?: number) => {
    const queue = toldQueue(answer, seed);
    const input = {
      folder,
      ledger: here.ledger,
      queue,
      progress: silentProgress,
      monotonic: () => 3_600_000 * hours++,
    };
    return { queue, result: runStage(input, stage, payloads) };
  };
  const reopen = (): void => {
    here.ledger.close();
    here.ledger = openRunLedger(path, () => new Date(0));
  };
  return { here, run, reopen, journal: join(path, stage.file), status: () => readRunStatus(path).stages[0] };
}

describe("a stage", () => {
  it("writes its journal in the order of the units and books each cost once, whatever arrives when and how often", async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const { run, journal, status } = fresh();
      const flaky: Answer = (job, attempt) => {
        const draw = stream(seed, job.key, attempt).next();
        if (draw < 0.2) return lost(true);
        if (draw < 0.4) return lost(false);
        if (draw < 0.5) return failed("INTERRUPTED");
        return done(job);
      };
      const { records, dead } = await run(flaky, seed).result;
      expect([seed, readFileSync(journal, "utf8")]).toEqual([seed, expected]);
      expect(records).toHaveLength(9);
      expect(dead).toEqual([]);
      expect(status()?.cost.calls).toBe(36); // 0 + … + 8
    }
  });

  it("submits what an earlier coordinator has leased under the same id, and books a failure of then as none", async () => {
    const { here, run, reopen, status } = fresh();
    here.ledger.register(stage.id, payloads.map(stage.keyOf));
    here.ledger.lease(stage.id, "unit 3");
    const epoch = here.ledger.epoch;
    reopen();
    expect(here.ledger.epoch).toBe(epoch + 1);
    const { queue, result } = run((job, attempt) =>
      job.key === "unit 3" && attempt === 1 ? failed("JOB_VERSION") : done(job),
    );
    expect((await result).records).toHaveLength(9);
    const ids = queue.submitted.filter((_, index) => index === 0 || queue.submitted[index]?.endsWith("-f2"));
    expect(ids.map((id) => id.slice(-3))).toEqual(["-f1", "-f2"]);
    expect(status()?.units).toMatchObject({ done: 9, dead: 0 });
  });

  it("buries what cannot be mended with its reason, completes the others, and fills the gap when it is revived", async () => {
    const { here, run, journal, status } = fresh();
    const { records, dead } = await run((job) => (job.key === "unit 4" ? failed("REPLAY_DIVERGED") : done(job))).result;
    expect(records).toHaveLength(8);
    expect(dead).toEqual([{ stage: "square", key: "unit 4", code: "REPLAY_DIVERGED", reason: "a reason (worker w)" }]);
    expect(status()).toMatchObject({ units: { done: 8, dead: 1 }, secondsLeft: 0 });
    const withoutIt = expected.replace(/.*unit 4.*\n/u, "");
    expect(readFileSync(journal, "utf8")).toBe(withoutIt);
    // Running again does not try it again; reviving does, and the journal is in order as if it had never died.
    expect((await run(done).result).records).toHaveLength(8);
    expect(here.ledger.revive()).toBe(1);
    expect((await run(done).result).records).toHaveLength(9);
    expect(readFileSync(journal, "utf8")).toBe(expected);
  });

  it("tries again what another try may mend, then buries it", async () => {
    const { run } = fresh();
    let tries = 0;
    const { dead } = await run((job) => {
      if (job.key !== "unit 2") return done(job);
      tries++;
      return failed("MODEL_SERVER_ERROR");
    }).result;
    expect(tries).toBe(MAX_ATTEMPTS);
    expect(dead).toMatchObject([{ key: "unit 2", code: "MODEL_SERVER_ERROR" }]);
  });

  it("buries a unit over which worker after worker dies, but not one that the queue forgets as often", async () => {
    const { run } = fresh();
    let deaths = 0;
    const { dead, records } = await run((job, attempt) => {
      if (job.key === "unit 5") {
        deaths++;
        return lost(true);
      }
      return job.key === "unit 6" && attempt <= 2 * MAX_LOSSES ? lost(false) : done(job);
    }).result;
    expect(deaths).toBe(MAX_LOSSES);
    expect(dead).toMatchObject([{ key: "unit 5", code: "WORKER_LOST" }]);
    expect(records).toHaveLength(8);
  });

  it("ends with the first unit's error where none could be done, and all live on", async () => {
    const { run, status } = fresh();
    await expect(run(() => failed("MODEL_REFUSED_REQUEST")).result).rejects.toMatchObject({
      code: "MODEL_REFUSED_REQUEST",
    });
    expect(status()?.units).toMatchObject({ dead: 0, failed: 0 });
    expect((await run(done).result).records).toHaveLength(9);
  });

  it("stops for what concerns every unit, keeps what is done, and goes on", async () => {
    const { run, status, journal } = fresh();
    await expect(
      run((job) => (job.key === "unit 7" ? failed("BUDGET_REACHED") : done(job))).result,
    ).rejects.toMatchObject({ code: "BUDGET_REACHED" });
    expect(status()?.units).toMatchObject({ dead: 0, failed: 0 });
    expect(status()?.units.done).toBeGreaterThan(0);
    await run(done).result;
    expect(readFileSync(journal, "utf8")).toBe(expected);
    expect(status()?.cost.calls).toBe(36);
  });
});

describe("the ledger and a journal beside it", () => {
  it("that was written before there was a ledger, in the order of arrival: taken over, and put in order", async () => {
    const { run, journal } = fresh();
    const lines = expected.trimEnd().split("\n");
    writeFileSync(journal, `${[lines[3], lines[0], lines[5]].join("\n")}\n`);
    const asked: string[] = [];
    const { records } = await run((job) => {
      asked.push(job.key);
      return done(job);
    }).result;
    expect(records).toHaveLength(9);
    expect(asked).not.toContain("unit 3");
    expect(readFileSync(journal, "utf8")).toBe(expected);
  });

  it("that has lost its last lines in a crash is completed from the ledger", async () => {
    const { run, journal } = fresh();
    await run(done).result;
    writeFileSync(journal, expected.slice(0, 60));
    const { queue, result } = run(done);
    await result;
    expect(queue.submitted).toEqual([]);
    expect(readFileSync(journal, "utf8")).toBe(expected);
  });

  it("that says something else is damage", async () => {
    const { run, journal } = fresh();
    await run(done).result;
    writeFileSync(journal, expected.replace('"value":16', '"value":17'));
    await expect(run(done).result).rejects.toMatchObject({ code: "RUN_CORRUPT", where: `${journal}:5` });
  });
});
