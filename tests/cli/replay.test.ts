import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type Handler, startServer } from "../models/loopback.ts";
import { completion } from "../synth/proxy-setting.ts";
import { cli, freshPath, startCli } from "./run-cli.ts";

let open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of open) await server.close();
  open = [];
});

const echo: Handler = ({ body }, response) => {
  response.end(completion(`re: ${JSON.parse(body).messages.at(-1).content}`));
};

const upstream = async (handler: Handler = echo): Promise<string> => {
  const server = await startServer(handler);
  open.push(server);
  return `${server.url}/v1`;
};

/** Two agents in a row; the second is told what the first said. `--word W` changes the first question. */
const program = (): string => {
  const file = freshPath("program.mjs");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(
    file,
    `const word = process.argv[process.argv.indexOf("--word") + 1] ?? "apples";
     const ask = async (agent, content) => {
       const response = await fetch(process.env.OPENAI_BASE_URL.replace("/v1", "/a/" + agent + "/v1/chat/completions"), {
         method: "POST", headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY },
         body: JSON.stringify({ model: "m", messages: [{ role: "user", content }] }) });
       const answer = await response.json();
       if (!response.ok) { console.error(answer.error.message); process.exit(5); }
       return answer.choices[0].message.content;
     };
     const first = await ask("planner", word);
     const second = await ask("solver", "said: " + first);
     console.log(JSON.stringify({ answer: second }));`,
  );
  return file;
};

const recordedTape = async (url: string, file: string): Promise<string> => {
  const tape = freshPath("tape");
  const { code, stdout, stderr } = await cli([
    "record",
    "--out",
    tape,
    "--upstream",
    url,
    "--",
    "node",
    file,
    "--word",
    "007",
  ]);
  expect(stderr).toContain("re: said: re: 007"); // what the program prints
  expect(stdout).toContain("2 calls on tape");
  expect(stdout).toContain("planner 1, solver 1");
  expect(code).toBe(0);
  return tape;
};

describe("rootstep record and replay", () => {
  it("records a program, shows its tape, validates it, and passes the identity gate without the server", async () => {
    const url = await upstream();
    const file = program();
    const tape = await recordedTape(url, file);
    for (const server of open) await server.close();
    open = [];

    const shown = await cli(["replay", "show", tape]);
    expect(shown.code).toBe(0);
    for (const text of ["planner", "solver", "chat/completions", "200", "re: said: re: 007", "its answer"]) {
      expect(shown.stdout).toContain(text);
    }
    const rows = JSON.parse((await cli(["replay", "show", tape, "--json"])).stdout);
    expect(rows.calls).toMatchObject([
      { call: 0, lane: "planner", promptTokens: 3 },
      { call: 1, lane: "solver" },
    ]);
    expect((await cli(["replay", "validate", tape])).code).toBe(0);

    const gate = await cli(["replay", tape, "--check", "--", "node", file, "--word", "007"]);
    expect(gate.stdout).toContain("identity gate: passed");
    expect(gate.stdout).toContain("matched 2 by content (L0)");
    expect(gate.stdout).toContain("live: 0");
    expect(gate.code).toBe(0);
    const json = await cli(["replay", tape, "--check", "--json", "--", "node", file, "--word", "007"]);
    expect(JSON.parse(json.stdout)).toMatchObject({ recorded: 2, liveCalls: 0, faults: [] });
    expect(json.stderr).toBe("");
  });

  it("fails the gate with exit code 1 and the first difference when the program asks something else", async () => {
    const file = program();
    const tape = await recordedTape(await upstream(), file);
    const { code, stdout, stderr } = await cli(["replay", tape, "--check", "--", "node", file, "--word", "pears"]);
    expect(code).toBe(1);
    for (const text of ["identity gate: FAILED", "REPLAY_DIVERGED", "recorded: 007", "asked:    pears"]) {
      expect(stdout).toContain(text);
    }
    expect(stderr).toContain("asked:    pears"); // the program's own log has it too
  });

  it("reruns with a corrected action, live after the cut and within the budget", async () => {
    const file = program();
    const tape = await recordedTape(await upstream(), file);
    const action = freshPath("action.txt");
    mkdirSync(dirname(action), { recursive: true });
    writeFileSync(action, "corrected\n");
    const command = ["--", "node", file, "--word", "007"];
    const { code, stdout } = await cli(["replay", tape, "--cut", "0", "--action", action, ...command]);
    expect(stdout).toContain("its answer: re: said: corrected");
    expect(stdout).toContain("replaced by the action: 1; live: 1");
    expect(code).toBe(0);
    const capped = await cli(["replay", tape, "--cut", "0", "--action", action, "--max-live-calls", "0", ...command]);
    expect(capped.code).toBe(3);
    expect(capped.stdout).toContain("0 live calls are made, the program asks for more");
  });

  it("saves what was recorded and ends the program when interrupted", async () => {
    const url = await upstream(({ body }, response) => {
      if (body.includes("said")) return; // the second call is never answered
      response.end(completion("hello"));
    });
    const tape = freshPath("tape");
    const running = startCli(["record", "--out", tape, "--upstream", url, "--", "node", program()]);
    await expect.poll(() => open.length > 0 && tapeLines(tape), { timeout: 20_000 }).toBe(2);
    running.child.kill("SIGINT");
    expect((await running.finished).code).toBe(130);
    const { stdout } = await cli(["replay", "validate", tape]);
    expect(stdout).toContain("0 faults");
  });

  it.each([
    [["record", "--out", "x", "--", "node"], "Missing required argument: upstream"],
    [["record", "--out", "x", "--upstream", "http://127.0.0.1:1/v1"], "no program is named"],
    [["record", "--out", "x", "--upstream", "ftp://h", "--", "node"], "not an http(s) URL"],
    [["record", "--out", "x", "--upstream", "https://api.example.com/v1", "--", "node"], "OPENAI_API_KEY is not set"],
    [["record", "--out", "x", "--upstream", "http://127.0.0.1:1/v1", "--run", "A b", "--", "node"], "no run name"],
    [["replay", "/no/such/tape", "--check", "--", "node"], "this is not a tape"],
    [["replay", "show"], "name one tape folder"],
  ] as const)("%j is refused", async (args, text) => {
    const { code, stderr } = await cli(args);
    expect(stderr).toContain(text);
    expect(code).toBe(2);
  });

  it("refuses a cut that is no call, an action without a cut, a check with one, an edited tape", async () => {
    const file = program();
    const tape = await recordedTape(await upstream(), file);
    const refused = async (...args: string[]) => {
      const { code, stderr } = await cli(["replay", tape, ...args, "--", "node", file]);
      return [code, stderr];
    };
    expect(await refused("--cut", "3")).toEqual([2, expect.stringContaining("the tape holds calls 0 to 1")]);
    expect(await refused("--action", file)).toEqual([2, expect.stringContaining("--action needs --cut")]);
    expect(await refused("--check", "--cut", "1")).toEqual([
      2,
      expect.stringContaining("--check replays the whole tape"),
    ]);
    const lines = join(tape, "tape.jsonl");
    writeFileSync(lines, readFileSync(lines, "utf8").replace('"lane":"solver"', '"lane":"verifier"'));
    expect(await refused("--check")).toEqual([1, expect.stringContaining("tape.jsonl:3")]);
    const faults = await cli(["replay", "validate", tape]);
    expect(faults.code).toBe(1);
    expect(faults.stdout).toContain("tape.jsonl:3");
  });
});

const tapeLines = (tape: string): number => {
  try {
    return readFileSync(join(tape, "tape.jsonl"), "utf8").split("\n").length - 1;
  } catch {
    return 0;
  }
};
