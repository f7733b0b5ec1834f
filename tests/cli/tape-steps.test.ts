import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { readTracerTraj } from "../../src/formats/tracertraj/read.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { startServer } from "../models/loopback.ts";
import { cli, freshPath } from "./run-cli.ts";

let open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of open) await server.close();
  open = [];
});

/** The searcher calls a tool and reads what it found; the writer repeats it. */
const PROGRAM = `
  const ask = async (agent, messages) => {
    const response = await fetch(process.env.OPENAI_BASE_URL.replace("/v1", "/a/" + agent + "/v1/chat/completions"), {
      method: "POST", headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY },
      body: JSON.stringify({ model: "m", messages }) });
    const answer = await response.json();
    if (!response.ok) { console.error(answer.error.message); process.exit(5); }
    return answer.choices[0].message;
  };
  const messages = [{ role: "user", content: "How high is Everest?" }];
  const wish = await ask("searcher", messages);
  messages.push(wish);
  if (wish.tool_calls) {
    const { query } = JSON.parse(wish.tool_calls[0].function.arguments);
    const found = await fetch(process.env.ROOTSTEP_TOOL_SEARCH + "/q?text=" + encodeURIComponent(query)).then((r) => r.text());
    messages.push({ role: "tool", tool_call_id: wish.tool_calls[0].id, content: found });
    messages.push(await ask("searcher", messages));
  }
  const last = await ask("writer", [{ role: "user", content: "Write: " + messages.at(-1).content }]);
  console.log(JSON.stringify({ answer: last.content }));`;

async function setting() {
  const model = await startServer(({ body, url }, response) => {
    const { messages } = JSON.parse(body);
    const last = messages.at(-1);
    const call = { id: "c1", type: "function", function: { name: "search", arguments: '{"query":"Everest height"}' } };
    const message =
      last.role === "user" && !last.content.startsWith("Write")
        ? { role: "assistant", content: null, tool_calls: [call] }
        : { role: "assistant", content: `re: ${last.content}` };
    response.end(JSON.stringify({ model: "m-1", choices: [{ index: 0, message }], at: url }));
  });
  let asked = 0;
  const tool = await startServer(({ url }, response) => void response.end(`8849 m (${url}, ${++asked})`));
  open.push(model, tool);
  const program = freshPath("program.mjs");
  mkdirSync(dirname(program), { recursive: true });
  writeFileSync(program, PROGRAM);
  const tape = freshPath("tape");
  const record = (...flags: string[]) =>
    cli([
      "record",
      "--out",
      tape,
      "--upstream",
      `${model.url}/v1`,
      "--tool",
      `search=${tool.url}`,
      ...flags,
      "--",
      "node",
      program,
    ]);
  const replay = (...flags: string[]) => cli(["replay", tape, ...flags, "--", "node", program]);
  return { tape, tool, record, replay, program };
}

const trajectoriesIn = async (file: string): Promise<Trajectory[]> => {
  const found: Trajectory[] = [];
  for await (const { trajectory } of readTracerTraj(file)) found.push(trajectory);
  return found;
};

describe("a program with a tool, recorded by the command line", () => {
  it("has its trajectory beside the tape, its tool on it, and replays without both servers", async () => {
    const { tape, tool, record, replay } = await setting();
    const { code, stdout } = await record();
    expect(stdout).toContain("3 calls on tape");
    expect(stdout).toContain("1 exchanges with tools");
    expect(code).toBe(0);
    const [made, ...more] = await trajectoriesIn(join(tape, "trajectory.jsonl"));
    expect(more).toEqual([]);
    expect(made).toMatchObject({
      stepPolicy: "per-call",
      task: { text: "How high is Everest?" },
      outcome: { success: true },
    });
    expect(made?.steps.map(({ agent, content }) => [agent, content])).toEqual([
      ["searcher", ""],
      ["searcher", "re: 8849 m (/q?text=Everest%20height, 1)"],
      ["writer", "re: Write: re: 8849 m (/q?text=Everest%20height, 1)"],
    ]);
    expect(made?.steps[0]?.toolCalls).toMatchObject([
      { name: "search", result: "8849 m (/q?text=Everest%20height, 1)" },
    ]);

    const shown = await cli(["replay", "show", tape, "--steps", "--step-policy", "per-agent-turn"]);
    expect(shown.stdout).toContain("2 steps (per-agent-turn); success by exit-code");
    expect(shown.stdout).toMatch(/searcher\W+0 1\W+search/u);
    const calls = await cli(["replay", "show", tape]);
    expect(calls.stdout).toMatch(/tool:search\W+GET \/q\?text=Everest%20height/u);
    const whole = await cli(["data", "validate", tape]);
    expect(whole.stdout).toContain("tape: 3 calls, 1 exchanges with tools");
    expect(whole.code).toBe(0);
    const records = await cli(["data", "validate", join(tape, "trajectory.jsonl")]);
    expect([records.code, records.stdout]).toEqual([0, expect.stringContaining("tracertraj: 1 good records, 0 bad")]);

    for (const server of open) await server.close();
    open = [];
    const gate = await replay("--check");
    expect(gate.stdout).toContain("identity gate: passed");
    expect(gate.stdout).toContain("tools: 1 exchanges; matched 1 by content");
    expect(gate.code).toBe(0);
    expect(tool.seen).toHaveLength(1);
  });

  it("is cut at a step: the corrected action in the place of a whole turn, the tool live after it", async () => {
    const { tape, tool, record, replay } = await setting();
    await record("--step-policy", "per-agent-turn");
    expect((await trajectoriesIn(join(tape, "trajectory.jsonl")))[0]?.stepPolicy).toBe("per-agent-turn");
    const action = freshPath("action.txt");
    mkdirSync(dirname(action), { recursive: true });
    writeFileSync(action, "8000 m");
    const out = freshPath("rerun");
    const turn = ["--cut-step", "0", "--step-policy", "per-agent-turn", "--action", action];
    const rerun = await replay(...turn, "--out", out);
    expect(rerun.stdout).toContain("its answer: re: Write: 8000 m");
    expect(rerun.stdout).toContain("replaced by the action: 1; live: 1");
    expect(tool.seen).toHaveLength(1); // the turn that would have asked it is gone
    const [made] = await trajectoriesIn(join(out, "trajectory.jsonl"));
    expect(made?.provenance.kind).toBe("rerun");
    expect(made?.steps[0]).toMatchObject({ content: "8000 m", extra: { replacedCalls: [0] } });
    // The first call of the searcher live: so is what it sets off.
    const live = await replay("--cut-step", "0");
    expect(live.stdout).toContain(
      "tools: 1 exchanges; matched 0 by content, 0 with ids and clocks masked, 0 by position; live: 1",
    );
    expect(live.stdout).toContain("8849 m (/q?text=Everest%20height, 2)");
    const refused = async (...flags: string[]) => {
      const { code, stderr } = await replay(...flags);
      return [code, stderr];
    };
    expect(await refused("--cut-step", "7")).toEqual([2, expect.stringContaining("steps 0 to 2")]);
    expect(await refused("--cut-step", "1", "--cut", "1")).toEqual([
      2,
      expect.stringContaining("both say where to cut"),
    ]);
  });

  it("becomes one file of trajectories with others", async () => {
    const [first, second] = [await setting(), await setting()];
    await first.record("--run", "first");
    await second.record("--run", "second");
    const out = freshPath("runs.jsonl");
    const { code, stdout } = await cli(["data", "steps", first.tape, second.tape, "--out", out]);
    expect(stdout).toContain(`2 runs in ${out}`);
    expect(code).toBe(0);
    expect((await trajectoriesIn(out)).map(({ id, steps }) => [id, steps.length])).toEqual([
      ["first", 3],
      ["second", 3],
    ]);
    const twice = await cli(["data", "steps", first.tape, first.tape, "--out", freshPath("x.jsonl")]);
    expect([twice.code, twice.stderr]).toEqual([1, expect.stringContaining("DATA_DUPLICATE_ID")]);
    const none = await cli(["data", "steps", "--out", freshPath("x.jsonl")]);
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("no tape is named")]);
  });
});

describe("side effects", () => {
  it("that are external are not run again, unless insisted on; a check may, where the tools are on tape", async () => {
    const { tape, record, replay, tool } = await setting();
    await record("--side-effects", "external");
    expect(readFileSync(join(tape, "tape.jsonl"), "utf8")).toContain('"sideEffects":"external"');
    const refused = await replay("--cut", "0");
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("SIDE_EFFECTS")]);
    expect(refused.stderr).toContain("--allow-external");
    expect(tool.seen).toHaveLength(1);
    expect((await replay("--check")).code).toBe(0);
    expect(tool.seen).toHaveLength(1);
    expect((await replay("--cut", "0", "--allow-external")).code).toBe(0);
    expect(tool.seen).toHaveLength(2);
    // Declared anew for one replay.
    expect((await replay("--cut", "0", "--side-effects", "taped")).code).toBe(0);
  });
});

describe("data validate", () => {
  it("finds what was changed on a tape, in exchanges with tools as well", async () => {
    const { tape, record } = await setting();
    await record();
    const bodies = join(tape, "bodies.jsonl");
    writeFileSync(bodies, readFileSync(bodies, "utf8").replace("8849 m", "8848 m"));
    const { code, stdout } = await cli(["data", "validate", tape]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/bodies\.jsonl:\d+: the body was changed/u);
    const json = JSON.parse((await cli(["data", "validate", tape, "--json"])).stdout);
    expect(json).toMatchObject({ format: "tape", calls: 3, tools: 1, faults: [{ code: "TAPE_DAMAGED" }] });
    expect(existsSync(join(tape, "trajectory.jsonl"))).toBe(true);
  });
});
