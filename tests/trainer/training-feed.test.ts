import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RootstepError } from "../../src/errors.ts";
import type { Clock } from "../../src/models/clock.ts";
import { stream } from "../../src/random.ts";
import { trainConfigSchema } from "../../trainer/config.ts";
import { buildExamples } from "../../trainer/dataset.ts";
import { truncateRecords } from "../../trainer/jsonl.ts";
import { openLineTail } from "../../trainer/line-tail.ts";
import { sftConfigSchema, trainSft } from "../../trainer/sft.ts";
import { type TrainRunOptions, trainRun } from "../../trainer/train-run.ts";
import { type FollowOptions, followTraining } from "../../trainer/training-feed.ts";
import { type FeedMessage, feedMessageSchema, type TrainingFeedEvent } from "../../trainer/training-feed-contract.ts";
import { readTrainingStatus } from "../../trainer/training-status.ts";
import { createTabularEngine, faultyRun, tabularCodec, tabularTarget } from "./tabular-engine.ts";

const SEED = 20_26_30;
const { examples } = buildExamples(
  Array.from({ length: 10 }, (_, i) => faultyRun(`run-${i}`, i % 3)),
  tabularCodec,
  { labels: ["injection"], maxPrompt: 1, withReference: true },
);
const config = trainConfigSchema.parse({
  steps: 8,
  promptsPerStep: 4,
  groupSize: 4,
  learningRate: 0.05,
  checkpointEvery: 3,
  evalEvery: 4,
});

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "rootstep-feed-"));
});
afterAll(() => rm(root, { recursive: true }));

async function newFolder(name: string, kind = "train", steps = config.steps): Promise<string> {
  const folder = join(root, name);
  await mkdir(folder, { recursive: true });
  const manifest = {
    runFolderVersion: 1,
    kind,
    rootstep: "0",
    startedAt: "2026-11-30T00:00:00.000Z",
    settings: { steps },
    inputs: {},
  };
  await writeFile(join(folder, "manifest.json"), JSON.stringify(manifest));
  return folder;
}

const train = (folder: string, more: Partial<TrainRunOptions> = {}) =>
  trainRun({ config, engine: createTabularEngine(), examples, heldOut: examples.slice(0, 3), folder, ...more });

/** Sleeps take no time, but others get their turn. */
const fastClock: Clock = {
  now: () => 0,
  sleep: async () => {
    await new Promise((resolve) => setImmediate(resolve));
  },
};

async function follow(folder: string, options: FollowOptions = {}): Promise<FeedMessage[]> {
  const messages: FeedMessage[] = [];
  for await (const message of followTraining(folder, { clock: fastClock, ...options })) {
    expect(feedMessageSchema.parse(JSON.parse(JSON.stringify(message)))).toEqual(message);
    messages.push(message);
  }
  return messages;
}

/** What a reader that obeys the feed has in the end. */
function taken(events: readonly TrainingFeedEvent[]) {
  const has = { metric: [] as unknown[], evaluation: [] as unknown[], timing: [] as unknown[] };
  for (const event of events) {
    if (event.kind === "rewound") has[event.of].length = event.kept;
    else if (event.kind === "metric") has.metric.push(event.metric);
    else if (event.kind === "evaluation") has.evaluation.push(event.evaluation);
    else if (event.kind === "timing") has.timing.push(event.timing);
  }
  return has;
}

async function onDisk(folder: string) {
  const read = async (file: string): Promise<unknown[]> =>
    (await readFile(join(folder, file), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  return {
    metric: await read("metrics.jsonl"),
    evaluation: await read("evaluations.jsonl"),
    timing: await read("timings.jsonl"),
  };
}

const eventsOf = (messages: readonly FeedMessage[]): TrainingFeedEvent[] => messages.map(({ event }) => event);
const statesOf = (messages: readonly FeedMessage[]) =>
  eventsOf(messages).flatMap((event) => (event.kind === "state" ? [event.state] : []));

describe("the feed of a training folder", () => {
  it("tells a finished run from its start: the run, every record, checkpoints, the ratio check, the end", async () => {
    const folder = await newFolder("finished");
    await train(folder);
    const messages = await follow(folder);
    expect(messages[0]?.event).toEqual({
      kind: "run",
      run: { kind: "grpo", steps: 8, startedAt: "2026-11-30T00:00:00.000Z" },
    });
    expect(taken(eventsOf(messages))).toEqual(await onDisk(folder));
    const course = eventsOf(messages).flatMap((event) => (event.kind === "course" ? [event.course.kind] : []));
    expect(course.filter((kind) => kind !== "checkpoint")).toEqual(["started", "ratio-check", "finished"]);
    expect(course.filter((kind) => kind === "checkpoint").length).toBeGreaterThanOrEqual(4);
    expect(messages.at(-1)?.event).toEqual({ kind: "state", state: "finished", reason: null, code: null });
  });

  it("can be taken up after any of its messages", async () => {
    const folder = await newFolder("positions");
    await train(folder);
    const messages = await follow(folder);
    for (const [i, { position }] of messages.entries()) {
      const rest = messages.slice(i + 1);
      // The state is said again to who comes anew.
      const expected = rest.length === 0 ? messages.slice(-1) : rest;
      expect(await follow(folder, { from: position })).toEqual(expected);
    }
  });

  it("goes along with a run that is under way, and loses and doubles nothing", async () => {
    const folder = await newFolder("live");
    const running = train(folder);
    // Until the run has noted its start the folder tells of none.
    await expect.poll(async () => (await readTrainingStatus(folder)).state.state).not.toBe("stopped");
    const [messages] = await Promise.all([follow(folder), running]);
    expect(taken(eventsOf(messages))).toEqual(await onDisk(folder));
    expect(statesOf(messages).at(-1)).toBe("finished");
  });

  it("follows a stopped, a crashed and a resumed run, whose records are cut back and made again", async () => {
    const folder = await newFolder("resumed");
    const controller = new AbortController();
    const messages: FeedMessage[] = [];
    const feed = followTraining(folder, { clock: fastClock, until: "abort", signal: controller.signal });
    const following = (async () => {
      for await (const message of feed) messages.push(message);
    })();
    const seen = (state: string) => expect.poll(() => statesOf(messages).at(-1), { timeout: 60_000 }).toBe(state);
    const stopping = new AbortController();
    const stopped = train(folder, {
      signal: stopping.signal,
      onMetric: ({ step }) => step === 1 && stopping.abort(),
    });
    await expect(stopped).rejects.toMatchObject({ code: "INTERRUPTED" });
    await seen("stopped");
    const crashed = train(folder, {
      onMetric: ({ step }) => {
        if (step === 4) throw new RootstepError("ENGINE_NAN", { what: "the loss is NaN" });
      },
    });
    await expect(crashed).rejects.toMatchObject({ code: "ENGINE_NAN" });
    await seen("failed");
    await appendFile(join(folder, "metrics.jsonl"), '{"step":5,"torn');
    await train(folder);
    await seen("finished");
    controller.abort();
    await following;
    expect(taken(eventsOf(messages))).toEqual(await onDisk(folder));
    // The last checkpoint is that after 3 steps: nothing before it is ever taken back.
    for (const event of eventsOf(messages)) if (event.kind === "rewound") expect(event.kept).toBeGreaterThanOrEqual(1);
    const failed = eventsOf(messages).find((event) => event.kind === "state" && event.state === "failed");
    expect(failed).toEqual({ kind: "state", state: "failed", reason: "the loss is NaN", code: "ENGINE_NAN" });
    // Who had read as far as the crash and comes back later is told the same.
    const before = messages.find(({ event }) => event.kind === "state" && event.state === "failed");
    const later = await follow(folder, { from: before?.position });
    const upTo = messages.slice(0, messages.indexOf(before!) + 1);
    expect(taken([...eventsOf(upTo), ...eventsOf(later)])).toEqual(await onDisk(folder));
  });

  it("tells of a warm start by cross-entropy as well", async () => {
    const folder = await newFolder("sft", "train-sft", 3);
    const sft = sftConfigSchema.parse({ steps: 3, batchSize: 4, learningRate: 0.05 });
    await trainSft({ config: sft, engine: createTabularEngine(), examples, target: tabularTarget, folder });
    const messages = await follow(folder);
    expect(messages[0]?.event).toMatchObject({ kind: "run", run: { kind: "sft" } });
    expect(eventsOf(messages).filter(({ kind }) => kind === "metric")).toHaveLength(3);
    expect(statesOf(messages)).toEqual(["finished"]);
  });
});

describe("the state of a run", () => {
  const started = { kind: "started", at: "2026-11-30T00:00:00.000Z", stepsDone: 0, pid: 4242, host: hostname() };
  const lines = (...events: object[]): string => events.map((event) => `${JSON.stringify(event)}\n`).join("");
  const stateIn = async (name: string, course: string | undefined, alive: boolean, host = hostname()) => {
    const folder = await newFolder(name);
    if (course !== undefined) await writeFile(join(folder, "events.jsonl"), course);
    return (await readTrainingStatus(folder, { host, isAlive: () => alive })).state;
  };

  it("is running while its process lives, and failed when that is gone without a word", async () => {
    expect(await stateIn("alive", lines(started), true)).toEqual({ state: "running", reason: null, code: null });
    expect(await stateIn("dead", lines(started), false)).toEqual({
      state: "failed",
      reason: "process 4242 is gone without a word: it was killed or crashed",
      code: null,
    });
  });

  it("of a process on another machine cannot be seen, which is said", async () => {
    const state = await stateIn("elsewhere", lines(started), false, "login-node");
    expect(state.state).toBe("running");
    expect(state.reason).toContain("cannot be seen from here");
  });

  it("of a folder without a course is told by its lock and its records", async () => {
    expect(await stateIn("old", undefined, true)).toMatchObject({ state: "stopped" });
    const folder = await newFolder("locked");
    await writeFile(join(folder, "lock"), "4242");
    expect((await readTrainingStatus(folder, { host: "", isAlive: () => true })).state.state).toBe("running");
    expect((await readTrainingStatus(folder, { host: "", isAlive: () => false })).state.state).toBe("stopped");
  });

  it("ends at the process's death for who follows", async () => {
    const folder = await newFolder("dies");
    await writeFile(join(folder, "events.jsonl"), lines(started));
    let looks = 0;
    const messages = await follow(folder, { view: { host: hostname(), isAlive: () => ++looks < 3 } });
    expect(statesOf(messages)).toEqual(["running", "failed"]);
  });
});

describe("a folder that cannot be followed", () => {
  const first = (folder: string, options: FollowOptions = {}) => follow(folder, options);

  it("is no run folder, another verb's, or has a damaged record", async () => {
    await expect(first(join(root, "nowhere"))).rejects.toMatchObject({ code: "FILE_MISSING" });
    await expect(first(await newFolder("eval", "eval"))).rejects.toMatchObject({ code: "RUN_MISMATCH" });
    const damaged = await newFolder("damaged");
    await writeFile(join(damaged, "metrics.jsonl"), '{"step":0\n{"step":1}\n');
    await expect(first(damaged)).rejects.toMatchObject({
      code: "RUN_CORRUPT",
      where: expect.stringContaining("metrics.jsonl:1"),
    });
  });

  it("is asked for with a position that is none", async () => {
    const folder = await newFolder("position");
    await expect(first(folder, { from: "42" })).rejects.toMatchObject({ code: "USAGE" });
  });
});

describe("the tail of a growing file", () => {
  it(`keeps who reads it equal to the file's whole lines, whatever happens to it (seed ${SEED})`, async () => {
    const random = stream(SEED, "tail");
    const path = join(root, "tail.jsonl");
    let tail = openLineTail(path);
    let has: string[] = [];
    let rewinds = 0;
    let torn = "";
    for (let round = 0; round < 300; round++) {
      const whole = async (): Promise<string[]> => {
        const text = await readFile(path, "utf8").catch(() => "");
        return text
          .slice(0, text.lastIndexOf("\n") + 1)
          .split("\n")
          .slice(0, -1);
      };
      const act = random.next();
      if (act < 0.6) {
        const line = `{"é":${Math.floor(random.next() * 3)}}`;
        const cut = random.chance(0.3) ? Math.ceil(line.length * random.next()) : line.length;
        if (torn !== "") await appendFile(path, torn);
        torn = cut < line.length ? `${line.slice(cut)}\n` : "";
        await appendFile(path, cut < line.length ? line.slice(0, cut) : `${line}\n`);
      } else if (act < 0.75) {
        // A resumed run: the first so many lines stay, a torn last one goes, others may follow before the next look.
        const keep = Math.floor(random.next() * ((await whole()).length + 1));
        let kept = 0;
        await truncateRecords(path, () => kept++ < keep);
        torn = "";
        if (random.chance(0.7)) await appendFile(path, `{"é":${Math.floor(random.next() * 3)}}\n`);
      } else if (act < 0.78) {
        await rm(path, { force: true });
        torn = "";
      } else if (act < 0.88) {
        tail = openLineTail(path, tail.position);
      }
      if (random.chance(0.6)) {
        for await (const item of tail.read()) {
          if (item.kind === "rewound") {
            has = has.slice(0, item.kept);
            rewinds++;
          } else {
            has.push(item.line);
            expect(item.number).toBe(has.length);
          }
        }
        expect(has).toEqual(await whole());
      }
    }
    expect(rewinds).toBeGreaterThan(10);
  });
});
