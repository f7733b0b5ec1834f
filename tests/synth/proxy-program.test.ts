import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { shippedPath } from "../../src/package-root.ts";
import { identityFaults } from "../../synth/proxy/identity.ts";
import { type RecordOptions, type RecordReport, recordProgram } from "../../synth/proxy/record-program.ts";
import { type ReplayProgramOptions, type ReplayReport, replayProgram } from "../../synth/proxy/replay-program.ts";
import { knowledgeOf } from "../../synth/simulator/knowledge.ts";
import { serveSimulator } from "../../synth/simulator/server.ts";
import { simulatedModel, simulatorConfigSchema } from "../../synth/simulator/simulator.ts";
import { loadTape } from "../../synth/tape/loader.ts";
import { validateTape } from "../../synth/tape/validate.ts";
import { gsm8k } from "../../synth/tasks/gsm8k.ts";
import { type Handler, startServer } from "../models/loopback.ts";
import { completion, freshFolder, TOKEN } from "./proxy-setting.ts";

let open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of open) await server.close();
  open = [];
});

const PROGRAMS = shippedPath("tests", "synth", "proxy-programs");
let runs = 0;

interface Run {
  readonly report: RecordReport;
  readonly folder: string;
  again(changes?: Partial<ReplayProgramOptions>): Promise<ReplayReport>;
}

const SETTINGS = {
  env: { PATH: process.env.PATH },
  cwd: PROGRAMS,
  timeLimitMs: 60_000,
  token: TOKEN,
  version: "0.0.0",
  now: () => new Date(0),
};

/** Records a program; `again` replays it. */
async function recorded(
  upstream: string,
  command: readonly string[],
  changes: Partial<RecordOptions> = {},
): Promise<Run> {
  const folder = freshFolder("tape");
  const options = { ...SETTINGS, command, ...changes };
  const run = `test-${process.pid}-${runs++}`;
  const report = await recordProgram({ ...options, out: folder, run, upstream: new URL(upstream) });
  return {
    report,
    folder,
    again: (more = {}) => replayProgram({ ...options, tape: loadTape(folder), ...more }),
  };
}

const server = async (handler: Handler): Promise<string> => {
  const started = await startServer(handler);
  open.push(started);
  return started.url;
};

/** A program given as its text. */
const script = (text: string): readonly string[] => {
  const file = freshFolder("program.mjs");
  mkdirSync(dirname(file), { recursive: true });
  const ask = `const ask = (content, more = {}, options = {}) => fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
    method: "POST",
    headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY, ...options.headers },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content }], ...more }),
    signal: options.signal,
  }).then((r) => r.json()).then((j) => j.choices?.[0]?.message.content ?? "error: " + j.error?.message);\n`;
  writeFileSync(file, `${ask}${text}`);
  return ["node", file];
};

const echo: Handler = ({ body }, response) => {
  response.end(completion(`re: ${JSON.parse(body).messages.at(-1).content}`));
};

describe("the planner–solver–verifier team as a program, the simulator as its model server", () => {
  const team = async (flags: readonly string[] = [], noise = 0) => {
    const tasks = await gsm8k.load({ seed: 5, limit: 3 });
    const model = simulatedModel({
      config: simulatorConfigSchema.parse({ provider: "simulator", hardRate: 0, noise }),
      solve: knowledgeOf(tasks),
    });
    const simulator = await serveSimulator({ model, port: 0, now: () => new Date(0) });
    open.push(simulator);
    const task = tasks[0]!;
    const file = freshFolder("task.txt");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, task.text);
    const prompts = shippedPath("synth", "systems", "planner-solver-verifier");
    const run = await recorded(simulator.url, ["node", "team.mjs", file, prompts, ...flags]);
    return { ...run, task, simulator };
  };

  it("is recorded, passes the identity gate with no live call, and answers right", async () => {
    const { report, again, task, folder } = await team();
    expect(report).toMatchObject({ exitCode: 0, retried: 0, failed: 0 });
    expect(Object.keys(report.lanes).sort()).toEqual(["planner", "solver", "verifier"]);
    expect((await gsm8k.check(task, report.answer)).success).toBe(true);
    const replay = await again();
    expect(identityFaults(replay)).toEqual([]);
    expect(replay).toMatchObject({ liveCalls: 0, unplayed: 0, levels: { L0: report.calls, L1: 0, L2: 0 } });
    expect(replay.outcome).toMatchObject({ exit: "same", answer: "same", stdout: "same" });
    expect(validateTape(folder).faults).toEqual([]);
  });

  it("may leave its answer in a file", async () => {
    const { report, again } = await team(["--answer-file"]);
    expect(report.answer).toMatch(/^\d+$/u);
    expect(identityFaults(await again())).toEqual([]);
  });

  it("reruns with a corrected action: what comes before is from tape, what comes after is live and has seen it", async () => {
    const { report, again, task, folder } = await team();
    const out = freshFolder("rerun");
    const upstream = new URL(loadTape(folder).header.upstream);
    const replay = await again({ cut: { at: 1, action: { kind: "text", text: "1 + 1 = 7777" } }, upstream, out });
    expect(replay).toMatchObject({ actions: 1, unplayed: 0, stopped: undefined, exitCode: 0 });
    expect(replay.levels.L0).toBe(2);
    expect(replay.liveCalls).toBeGreaterThan(0);
    expect((await gsm8k.check(task, replay.answer)).success).toBe(false);
    expect(replay.answer).not.toBe(report.answer);
    const rerun = loadTape(out);
    expect(rerun.calls.slice(0, 3).map(({ from }) => from)).toEqual(["tape", "action", "live"]);
    for (const { request } of rerun.calls.slice(2)) expect(rerun.bodies.get(request.body).toString()).toContain("7777");
    // The rerun's own tape is a whole recording: it replays too.
    const third = await again({ tape: rerun });
    expect(identityFaults(third)).toEqual([]);
  });
});

describe.skipIf(spawnSync("python3", ["--version"]).status !== 0)("a Python program", () => {
  it("replays though its prompts hold a temporary path and the time; folders are its own and the same each run", async () => {
    const url = await server(({ body }, response) => {
      const { messages, stream } = JSON.parse(body);
      const content = `in ${/\/\S*tmp\S*/u.exec(messages[0].content)?.[0] ?? "?"}`;
      if (stream !== true) return void response.end(completion(content));
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const piece of content.match(/.{1,7}/gu) ?? []) {
        response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: piece } }] })}\n\n`);
      }
      response.end("data: [DONE]\n\n");
    });
    const { report, again, folder } = await recorded(url, ["python3", "ask.py"]);
    expect(report).toMatchObject({ exitCode: 0, calls: 2, answer: "True" });
    const replay = await again();
    expect(identityFaults(replay)).toEqual([]);
    expect(replay).toMatchObject({ answer: "True", liveCalls: 0, levels: { L0: 0, L1: 2, L2: 0 } });
    expect(replay.outcome.stdout).toBe("same");
    const tape = loadTape(folder);
    const printed = JSON.parse(tape.bodies.get(tape.end!.stdout).toString());
    expect(existsSync(printed.cwd)).toBe(false); // taken away when the run was over
    expect(printed.home).not.toBe(process.env.HOME);
  });
});

describe("programs that are not as they were", () => {
  it("but for a session id and a clock replay at L1, and see this run's id in recorded answers", async () => {
    const url = await server(echo);
    const { again } = await recorded(
      url,
      script(`import { randomUUID } from "node:crypto";
        const session = randomUUID();
        const first = await ask("Session " + session + " began " + new Date().toISOString());
        console.log(JSON.stringify({ answer: String(first.includes(session)) }));`),
    );
    const replay = await again();
    expect(replay).toMatchObject({ answer: "true", levels: { L0: 0, L1: 1, L2: 0 } });
    expect(identityFaults(replay)).toEqual([]);
  });

  it("with more calls, fewer calls and other calls fail the gate, each with what is wrong", async () => {
    const url = await server(echo);
    const asking = (...contents: string[]) =>
      script(`${contents.map((content) => `console.log(await ask("${content}"));`).join("\n")}`);
    const { again } = await recorded(url, asking("one", "two"));
    const faults = async (...contents: string[]) =>
      identityFaults(await again({ command: asking(...contents) })).join("\n");
    expect(await faults("one", "two")).toBe("");
    expect(await faults("one", "two", "three")).toContain("TAPE_EXHAUSTED");
    expect(await faults("one")).toContain("1 calls fewer");
    expect(await faults("one", "zwei")).toContain("recorded: two");
  });

  it("with another output or exit code fail the gate though their calls match", async () => {
    const url = await server(echo);
    const program = (end: string) => script(`await ask("x"); ${end}`);
    const { again } = await recorded(url, program('console.log("at 12:00:00 done")'));
    const faults = async (end: string) => identityFaults(await again({ command: program(end) })).join("\n");
    expect(await faults('console.log("at 23:59:59 done")')).toBe("");
    expect(await faults('console.log("at 12:00:00 failed")')).toContain("standard output, character 12");
    expect(await faults('console.log("at 12:00:00 done"); process.exit(4)')).toContain("exit: recorded 0, now 4");
  });

  it("that go on after a divergence are ended", async () => {
    const url = await server(echo);
    const { again } = await recorded(url, script('await ask("x")'));
    const replay = await again({ command: script('for (;;) { await ask("y"); }') });
    expect(replay.stopped?.code).toBe("REPLAY_DIVERGED");
    expect(replay.signal).not.toBeNull();
  });

  it("replay identical calls at once, recorded with their failures and retries", async () => {
    let n = 0;
    const url = await server((_, response) => {
      n++;
      if (n === 2) response.statusCode = 503;
      response.end(n === 2 ? "{}" : completion(`answer ${n}`));
    });
    const { report, again } = await recorded(
      url,
      script(`const persistent = async () => { for (;;) { const said = await ask("same"); if (!said.startsWith("error")) return said; } };
        const answers = await Promise.all([persistent(), persistent(), persistent()]);
        console.log(JSON.stringify({ answer: answers.sort() }));`),
    );
    expect(report).toMatchObject({ calls: 3, retried: 1, failed: 0 });
    const replay = await again();
    expect(identityFaults(replay)).toEqual([]);
  });
});

describe("programs that go wrong", () => {
  it("past the proxy are told so, with the setting that is likely to mend it", async () => {
    const url = await server(echo);
    const noCalls = (text: string) =>
      recorded(url, script(text)).then(
        () => undefined,
        (error: unknown) => error,
      );
    const own = `await fetch("${url}/chat/completions", { method: "POST", body: '{"messages":[{"content":"x"}]}' });`;
    expect(await noCalls(own)).toMatchObject({ code: "NO_CALLS", hint: expect.stringContaining("OPENAI_BASE_URL") });
    expect(await noCalls('console.error("boom: no config"); process.exit(1)')).toMatchObject({
      what: expect.stringContaining("boom: no config"),
    });
    expect(await noCalls('await ask("x", {}, { headers: { authorization: "Bearer sk-mine" } })')).toMatchObject({
      what: expect.stringContaining("1 requests came with another key"),
      hint: expect.stringContaining("ROOTSTEP_KEYED_BASE_URL"),
    });
    expect(
      await noCalls('await fetch(process.env.OPENAI_BASE_URL + "/v1/chat/completions", { method: "POST" })'),
    ).toMatchObject({
      what: expect.stringContaining("other paths"),
    });
  });

  it("never exit are ended at the time limit with every process of their group; the calls are kept", async () => {
    const url = await server(echo);
    const pidFile = freshFolder("pid");
    mkdirSync(dirname(pidFile), { recursive: true });
    const program = script(`import { spawn } from "node:child_process";
      import { writeFileSync } from "node:fs";
      const child = spawn(process.execPath, ["-e", "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)"], { stdio: "inherit" });
      await ask("x");
      writeFileSync(${JSON.stringify(pidFile)}, String(child.pid));
      process.on("SIGTERM", () => {});
      setInterval(() => {}, 1000);`);
    const { report, folder } = await recorded(url, program, { timeLimitMs: 5_000 });
    expect(report).toMatchObject({ timedOut: true, exitCode: null, signal: "SIGKILL", calls: 1 });
    const child = Number(readFileSync(pidFile, "utf8"));
    await expect.poll(() => isRunning(child)).toBe(false);
    expect(loadTape(folder).end).toMatchObject({ timedOut: true });
  });

  it("cannot be started, or have no name, are refused, and no empty tape stays in the way", async () => {
    const url = await server(echo);
    const out = freshFolder("tape");
    const options = { ...SETTINGS, run: `none-${process.pid}`, out, upstream: new URL(url) };
    const refused = (...command: string[]) => expect(recordProgram({ ...options, command })).rejects;
    await refused("no-such-program-anywhere").toMatchObject({ code: "USAGE" });
    await refused().toMatchObject({ code: "USAGE", hint: expect.stringContaining("--") });
    await refused("node", "-e", "0").toMatchObject({ code: "NO_CALLS" });
    expect((await recordProgram({ ...options, command: script('await ask("x")') })).calls).toBe(1);
  });

  it("leave a replay's client hanging nowhere when they abort a stream on purpose", async () => {
    const url = await server((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('data: {"choices":[{"index":0,"delta":{"content":"first"}}]}\n\n'); // and nothing after it
    });
    const { report, again } = await recorded(
      url,
      script(`const leave = new AbortController();
        const response = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
          method: "POST", headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY },
          body: JSON.stringify({ messages: [] }), signal: leave.signal });
        const { value } = await response.body.getReader().read();
        console.log(new TextDecoder().decode(value));
        leave.abort();`),
    );
    expect(report.calls).toBe(1);
    expect(identityFaults(await again())).toEqual([]);
  });

  it("run only once at a time under one name, in folders of their own", async () => {
    let finish: () => void = () => {};
    let isAsked: () => void = () => {};
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve;
    });
    const url = await server((_, response) => {
      finish = () => void response.end(completion("x"));
      isAsked();
    });
    const run = `twice-${process.pid}`;
    const options = { ...SETTINGS, command: script('await ask("x")'), run, upstream: new URL(url) };
    const first = recordProgram({ ...options, out: freshFolder("one") });
    await asked;
    await expect(recordProgram({ ...options, out: freshFolder("two") })).rejects.toMatchObject({ code: "RUN_LOCKED" });
    finish();
    expect((await first).calls).toBe(1);
  });

  it("see no key but the run's, and a fresh folder each time", async () => {
    const url = await server(echo);
    const { report, again, folder } = await recorded(
      url,
      script(`import { existsSync, writeFileSync } from "node:fs";
        console.log(process.env.MY_KEY ?? "no key", existsSync("left-over"), existsSync("given.txt"));
        writeFileSync("left-over", "x");
        await ask("x");`),
      {
        env: { PATH: process.env.PATH, MY_KEY: "upstream-secret-1" },
        hidden: ["MY_KEY"],
        files: (() => {
          const given = freshFolder("given");
          mkdirSync(given, { recursive: true });
          writeFileSync(join(given, "given.txt"), "");
          return given;
        })(),
      },
    );
    expect(report.exitCode).toBe(0);
    const tape = loadTape(folder);
    expect(tape.bodies.get(tape.end!.stdout).toString()).toBe("no key false true\n");
    expect(identityFaults(await again())).toEqual([]);
  });
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie that nobody has waited for counts as ended.
    return !/^State:\s+Z/mu.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
