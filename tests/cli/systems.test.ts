import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { knowledgeOf } from "../../synth/simulator/knowledge.ts";
import { serveSimulator } from "../../synth/simulator/server.ts";
import { simulatedModel, simulatorConfigSchema } from "../../synth/simulator/simulator.ts";
import { autogenRoundRobin } from "../../synth/systems/autogen/system.ts";
import { installed } from "../../synth/systems/installation.ts";
import { gsm8k } from "../../synth/tasks/gsm8k.ts";
import { startServer } from "../models/loopback.ts";
import { completion } from "../synth/proxy-setting.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { cli } from "./run-cli.ts";

let folder = "";
let open: { close(): Promise<void> }[] = [];
beforeEach(() => {
  folder = temporaryFolder("cli-systems");
});
afterEach(async () => {
  for (const server of open) await server.close();
  open = [];
  rmSync(folder, { recursive: true, force: true });
});

/** A machine on which nothing is installed. */
const bare = () => ({ ROOTSTEP_CACHE: join(folder, "cache") });

describe("rootstep list systems", () => {
  it("says what is installed and how to get what is missing", async () => {
    const { stdout, code } = await cli(["list", "systems", "--json"], bare());
    expect(code).toBe(0);
    const { systems } = JSON.parse(stdout);
    const state = (id: string) => systems.find((system: { id: string }) => system.id === id)?.state;
    expect(state("planner-solver-verifier")).toBe("in process");
    expect(state("langgraph")).toBe("missing: rootstep install langgraph");
    expect((await cli(["list", "systems"], bare())).stdout).toContain("missing: rootstep install smolagents");
  });
});

describe("rootstep record --system", () => {
  const record = (...args: string[]) =>
    cli(["record", "--out", join(folder, "tape"), "--upstream", "http://127.0.0.1:9/v1", ...args], bare());
  const complete = ["--system", "langgraph", "--task", "gsm8k:test-0001", "--model", "m"];

  it.each([
    [complete, "langgraph lacks its packages", "rootstep install langgraph"],
    [["--system", "langgraph", "--model", "m"], "--system needs --task", "--help"],
    [["--system", "langgraph", "--task", "gsm8k:test-0001"], "--system needs --model", "--help"],
    [["--system", "lang", "--task", "gsm8k:1", "--model", "m"], 'no program system "lang"', "rootstep list"],
    [["--system", "langgraph", "--task", "gsm8k:no-such", "--model", "m"], 'no task "no-such"', "gsm8k:test-0001"],
    [["--system", "langgraph", "--task", "gsm8k", "--model", "m"], "is no SET:ID", "--help"],
    [["--system", "langgraph", "--task", "gsm9k:1", "--model", "m"], 'no task set "gsm9k"', "rootstep list"],
    [[...complete, "--", "node"], "nothing may stand after `--`", "--help"],
    [["--task", "gsm8k:test-0001", "--", "node"], "--task goes with --system", "--help"],
    [[], "no program is named", "or a --system"],
  ] as const)("%j is refused", async (args, text, advice) => {
    const { code, stderr } = await record(...args);
    expect(stderr).toContain(text);
    expect(stderr).toContain(advice);
    expect(code).toBe(2);
  });
});

describe("rootstep install", () => {
  it.each([
    [[], "no system is named"],
    [["no-such"], 'no program system "no-such"'],
  ] as const)("%j is refused", async (args, text) => {
    const { code, stderr } = await cli(["install", ...args], bare());
    expect(stderr).toContain(text);
    expect(code).toBe(2);
  });
});

const found = installed(autogenRoundRobin, process.env);
describe.skipIf(found.state === "missing" && process.env.ROOTSTEP_REQUIRE_SYSTEMS !== "1")(
  "a system on the command line",
  () => {
    it("is recorded, checked and rerun from its tape alone", async () => {
      const tasks = await gsm8k.load({ seed: 1, limit: 3 });
      const config = simulatorConfigSchema.parse({ provider: "simulator", hardRate: 0, noise: 0 });
      const model = simulatedModel({ config, solve: knowledgeOf(tasks) });
      const simulator = await serveSimulator({ model, port: 0, now: () => new Date(0) });
      open.push(simulator);
      const tape = join(folder, "tape");
      const env = {
        ROOTSTEP_CACHE: process.env.ROOTSTEP_CACHE ?? "",
        XDG_CACHE_HOME: process.env.XDG_CACHE_HOME ?? "",
      };
      const recorded = await cli(
        [
          "record",
          "--system",
          "autogen-round-robin",
          "--task",
          "gsm8k:test-0001",
          "--model",
          "simulator",
          "--preload",
          "--upstream",
          simulator.url,
          "--out",
          tape,
        ],
        env,
      );
      expect(recorded.stdout).toContain("9 calls on tape");
      expect(recorded.stdout).toContain("the task is solved");
      expect(recorded.stdout).not.toContain("-- CMD");
      expect(recorded.code).toBe(0);

      const gate = await cli(["replay", tape, "--check"], env);
      expect(gate.stdout).toContain("identity gate: passed");
      expect(gate.stdout).toContain("matched 9 by content (L0)");
      expect(gate.stderr).not.toContain("packages are not those");
      expect(gate.code).toBe(0);

      const action = join(folder, "action.txt");
      writeFileSync(action, "16 - 3 = 14");
      const out = join(folder, "rerun");
      const rerun = await cli(["replay", tape, "--cut", "1", "--action", action, "--out", out], env);
      expect(rerun.stdout).toContain("its answer: 20");
      expect(rerun.stdout).toContain("the task is not solved");
      // The rerun's own tape knows its system, and the clock at which the preload stopped.
      const third = await cli(["replay", out, "--check"], env);
      expect(third.stdout).toContain("matched 9 by content (L0)");
      expect(third.code).toBe(0);
    });
  },
);

describe("a program with the preload", () => {
  it("asks the same to the byte when it is replayed, though its prompt holds an id, a clock and a random number", async () => {
    const server = await startServer(({ body }, response) => {
      response.end(completion(`re: ${JSON.parse(body).messages.at(-1).content}`));
    });
    open.push(server);
    const file = join(folder, "program.mjs");
    writeFileSync(
      file,
      `const content = [crypto.randomUUID(), Date.now(), Math.random()].join(" ");
       const response = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
         method: "POST", headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY },
         body: JSON.stringify({ model: "m", messages: [{ role: "user", content }] }) });
       console.log(JSON.stringify({ answer: (await response.json()).choices[0].message.content }));`,
    );
    const [tape, plain] = [join(folder, "tape"), join(folder, "plain")];
    const upstream = ["--upstream", `${server.url}/v1`];
    expect((await cli(["record", "--preload", ...upstream, "--out", tape, "--", "node", file])).code).toBe(0);
    const gate = await cli(["replay", tape, "--check", "--", "node", file]);
    expect(gate.stdout).toContain("matched 1 by content (L0)");
    expect(gate.code).toBe(0);
    // Off unless asked for.
    expect((await cli(["record", ...upstream, "--out", plain, "--", "node", file])).code).toBe(0);
    expect((await cli(["replay", plain, "--check", "--", "node", file])).stdout).toContain("matched 0 by content (L0)");
  });
});

describe("the packages of a program", () => {
  it("are on its tape, and a replay with others says so", async () => {
    const server = await startServer((_, response) => void response.end(completion("yes")));
    open.push(server);
    const file = join(folder, "app", "program.mjs");
    const lock = join(folder, "app", "node_modules", ".package-lock.json");
    const packages = (version: string): void =>
      writeFileSync(
        lock,
        JSON.stringify({
          packages: {
            "": {},
            "node_modules/openai": { version },
            "node_modules/a/node_modules/b": { version: "1.0.0" },
          },
        }),
      );
    mkdirSync(dirname(lock), { recursive: true });
    packages("6.1.0");
    writeFileSync(
      file,
      `await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", { method: "POST",
         headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY }, body: JSON.stringify({ model: "m", messages: [] }) });
       console.log("done");`,
    );
    const tape = join(folder, "tape");
    const command = ["--", "node", file];
    expect((await cli(["record", "--upstream", `${server.url}/v1`, "--out", tape, ...command])).code).toBe(0);
    expect(readFileSync(join(tape, "tape.jsonl"), "utf8")).toContain('"packages":{"openai":"6.1.0"}');
    expect((await cli(["replay", tape, "--check", ...command])).stderr).not.toContain("packages are not");
    packages("6.2.0");
    const other = await cli(["replay", tape, "--check", ...command]);
    expect(other.stderr).toContain("packages are not those of the recording: openai 6.1.0 → 6.2.0");
    expect(other.code).toBe(0);
    const json = JSON.parse((await cli(["replay", tape, "--check", "--json", ...command])).stdout);
    expect(json.packageChanges).toEqual(["openai 6.1.0 → 6.2.0"]);
  });
});
