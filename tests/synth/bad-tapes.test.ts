import { appendFileSync, cpSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { identityFaults } from "../../synth/proxy/identity.ts";
import { recordProgram } from "../../synth/proxy/record-program.ts";
import { type ReplayProgramOptions, replayProgram } from "../../synth/proxy/replay-program.ts";
import { loadTape } from "../../synth/tape/loader.ts";
import { FIRST_SUM, sealLine } from "../../synth/tape/sealed-line.ts";
import { validateTape } from "../../synth/tape/validate.ts";
import { type Handler, startServer } from "../models/loopback.ts";
import { completion, freshFolder, TOKEN } from "./proxy-setting.ts";

let open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of open) await server.close();
  open = [];
});

const server = async (handler: Handler) => {
  const started = await startServer(handler);
  open.push(started);
  return started;
};

/** A program that asks its model those questions, a tool where one begins with "tool ", and prints all answers. */
const asking = (...questions: string[]): readonly string[] => {
  const file = freshFolder("program.mjs");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(
    file,
    `const ask = async (content) => {
       const response = content.startsWith("tool ")
         ? await fetch(process.env.ROOTSTEP_TOOL_SEARCH + "/" + content.slice(5))
         : await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", { method: "POST",
             headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY },
             body: JSON.stringify({ model: "m", messages: [{ role: "user", content }] }) });
       if (!response.ok) { console.error(await response.text()); process.exit(5); }
       return response.text();
     };
     for (const question of ${JSON.stringify(questions)}) {
       if (question === "hang") { process.on("SIGTERM", () => {}); await new Promise(() => setInterval(() => {}, 1000)); }
       console.log(question, await ask(question));
     }`,
  );
  return ["node", file];
};

const SETTINGS = {
  env: { PATH: process.env.PATH },
  cwd: "/",
  timeLimitMs: 60_000,
  token: TOKEN,
  version: "0.0.0",
  now: () => new Date(0),
};
let runs = 0;

async function recorded(...questions: string[]) {
  const model = await server(({ body }, response) => {
    response.end(completion(`re: ${JSON.parse(body).messages.at(-1).content}`));
  });
  const tool = await server(({ url }, response) => void response.end(`found ${url}`));
  const folder = freshFolder("tape");
  const run = `bad-${process.pid}-${runs++}`;
  const tools = [{ name: "search", url: new URL(tool.url), variable: "ROOTSTEP_TOOL_SEARCH" }];
  const options = { ...SETTINGS, upstream: new URL(model.url) };
  await recordProgram({ ...options, command: asking(...questions), out: folder, run, tools });
  const again = (command: readonly string[], more: Partial<ReplayProgramOptions> = {}) =>
    replayProgram({ ...options, command, tape: loadTape(folder), ...more });
  return { folder, run, model, tool, options, again };
}

const QUESTIONS = ["one", "tool a", "two", "tool b", "three"] as const;

describe("a tape that is not whole", () => {
  it("cut off anywhere replays what it holds, never more, and fails the gate", async () => {
    const { folder, model, tool, again } = await recorded(...QUESTIONS);
    const [asked, searched] = [model.seen.length, tool.seen.length];
    const file = join(folder, "tape.jsonl");
    const ends = [...readFileSync(file, "utf8").matchAll(/\n/gu)].map(({ index }) => index + 1);
    // After the third call (one, tool a, two), in the middle of the next line.
    truncateSync(file, ends[3]! + 40);
    expect(validateTape(folder)).toMatchObject({ calls: 2, tools: 1, ended: false, faults: [] });
    const whole = await again(asking(...QUESTIONS));
    expect(whole).toMatchObject({ recorded: 2, liveCalls: 0, levels: { L0: 2 }, tools: { recorded: 1, live: 0 } });
    expect(whole.stopped?.code).toBe("TAPE_EXHAUSTED");
    const faults = identityFaults(await again(asking("one", "tool a", "two"))).join("\n");
    expect(faults).toContain("the recording was interrupted");
    expect([model.seen.length, tool.seen.length]).toEqual([asked, searched]);
  });

  it("without its first line, or with a line of another tape in it, is refused with the place", async () => {
    const { folder, again } = await recorded("one", "tool a", "two");
    const file = join(folder, "tape.jsonl");
    const lines = readFileSync(file, "utf8").split("\n");
    const other = readFileSync(join((await recorded("one", "tool a", "two")).folder, "tape.jsonl"), "utf8").split("\n");
    writeFileSync(file, lines.slice(1).join("\n"));
    await expect((async () => again(asking("one")))()).rejects.toMatchObject({ code: "TAPE_DAMAGED" });
    writeFileSync(file, [...lines.slice(0, 2), other[2], ...lines.slice(3)].join("\n"));
    await expect((async () => again(asking("one")))()).rejects.toMatchObject({
      code: "TAPE_DAMAGED",
      where: expect.stringMatching(/tape\.jsonl:3$/u),
    });
  });

  it("with an exchange taken out and all sums made anew is found by its own count", async () => {
    const { folder } = await recorded("one", "tool a", "two");
    const file = join(folder, "tape.jsonl");
    const records: unknown[] = readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).record);
    let sum = FIRST_SUM;
    const kept = records.filter((record) => (record as { type: string }).type !== "tool");
    const resealed = kept.map((record) => {
      const sealed = sealLine(sum, record);
      sum = sealed.sum;
      return sealed.line;
    });
    writeFileSync(file, resealed.join(""));
    expect(validateTape(folder).faults).toMatchObject([
      { what: expect.stringContaining("counts 1 exchanges with tools") },
    ]);
  });

  it("with a tool's question changed, sums and body made anew, is found by the question's key", async () => {
    const { folder } = await recorded("one", "tool a", "two");
    const file = join(folder, "tape.jsonl");
    let sum = FIRST_SUM;
    const lines = readFileSync(file, "utf8").trimEnd().split("\n");
    const edited = lines.map((line) => {
      const { record } = JSON.parse(line.replace('"path":"/a"', '"path":"/b"'));
      const sealed = sealLine(sum, record);
      sum = sealed.sum;
      return sealed.line;
    });
    writeFileSync(file, edited.join(""));
    expect(validateTape(folder).faults).toMatchObject([
      { what: expect.stringContaining("key does not match what it asks") },
    ]);
  });

  it("of another version of rootstep says which", async () => {
    const { folder } = await recorded("one");
    const file = join(folder, "tape.jsonl");
    const [first = "", ...rest] = readFileSync(file, "utf8").split("\n");
    const header = { ...JSON.parse(first).record, version: 9 };
    writeFileSync(file, [sealLine(FIRST_SUM, header).line.trimEnd(), ...rest].join("\n"));
    expect(() => loadTape(folder)).toThrow(/layout version 9, this rootstep reads version 1/u);
    expect(validateTape(folder).faults).toMatchObject([{ code: "TAPE_VERSION" }]);
  });

  it("is not harmed by other files in its folder, such as its trajectory", async () => {
    const { folder, again } = await recorded("one");
    const copy = freshFolder("copy");
    cpSync(folder, copy, { recursive: true });
    appendFileSync(join(copy, "trajectory.jsonl"), "{}");
    expect(identityFaults(await again(asking("one"), { tape: loadTape(copy) }))).toEqual([]);
  });
});

describe("a program that is not the recorded one", () => {
  it("asks something else first, or nothing at all: both are said", async () => {
    const { again, model } = await recorded("one", "two");
    const asked = model.seen.length;
    const other = await again(asking("uno"));
    expect(other.stopped?.what).toMatch(/recorded: one\n.*asked: {4}uno/u);
    await expect(again(["node", "-e", "0"])).rejects.toMatchObject({ code: "NO_CALLS" });
    expect(model.seen.length).toBe(asked);
  });

  it("uses its tool more, less or otherwise", async () => {
    const { again, tool } = await recorded("one", "tool a", "two");
    const searched = tool.seen.length;
    const faults = async (...questions: string[]) => identityFaults(await again(asking(...questions))).join("\n");
    expect(await faults("one", "tool a", "two")).toBe("");
    expect(await faults("one", "tool a", "two", "tool a")).toContain("TAPE_EXHAUSTED");
    expect(await faults("one", "two")).toContain("1 requests to tools fewer");
    expect(await faults("one", "tool b", "two")).toMatch(
      /first difference at path[\s\S]*recorded: \/a[\s\S]*asked: {4}\/b/u,
    );
    expect(tool.seen.length).toBe(searched);
  });

  it("never ends: it is ended at the time limit, and the gate says so", async () => {
    const { again } = await recorded("one");
    const replay = await again(asking("one", "hang"), { timeLimitMs: 3_000 });
    expect(replay).toMatchObject({ timedOut: true, signal: "SIGKILL", unplayed: 0 });
    expect(identityFaults(replay).join("\n")).toContain("did not end within its time limit");
  });
});

describe("two programs on one run id", () => {
  it("do not run at once, recorded and replayed: the second is told who holds it, and harms nothing", async () => {
    const { folder, run, options, again } = await recorded("one");
    let isAsked: () => void = () => {};
    let finish: () => void = () => {};
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve;
    });
    const slow = await server((_, response) => {
      finish = () => void response.end(completion("x"));
      isAsked();
    });
    const out = freshFolder("second");
    const recording = recordProgram({ ...options, upstream: new URL(slow.url), command: asking("one"), out, run });
    await asked;
    await expect(again(asking("one"))).rejects.toMatchObject({
      code: "RUN_LOCKED",
      what: expect.stringContaining(run),
    });
    finish();
    expect((await recording).calls).toBe(1);
    expect(validateTape(folder).faults).toEqual([]);
    expect(identityFaults(await again(asking("one")))).toEqual([]);
  });
});
