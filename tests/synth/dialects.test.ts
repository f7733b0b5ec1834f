import { readFileSync } from "node:fs";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ChatRequest, ChatResponse } from "../../src/models/chat-model.ts";
import { shippedPath } from "../../src/package-root.ts";
import { stream } from "../../src/random.ts";
import type { Task } from "../../src/trajectory/schema.ts";
import { dialects, readRequest } from "../../synth/simulator/dialects/registry.ts";
import { isWorkedOut, linesIn, nextSpeaker, problemIn, roleIn } from "../../synth/simulator/dialects/team-lines.ts";
import { knowledgeOf } from "../../synth/simulator/knowledge.ts";
import { serveSimulator } from "../../synth/simulator/server.ts";
import { type SimulatorConfig, simulatedModel, simulatorConfigSchema } from "../../synth/simulator/simulator.ts";
import { gsm8k } from "../../synth/tasks/gsm8k.ts";
import { lastNumber } from "../../synth/tasks/numeric-checker.ts";

let tasks: readonly Task[] = [];
beforeAll(async () => {
  tasks = await gsm8k.load({ seed: 1, limit: 200 });
});

const model = (config: Partial<SimulatorConfig>) =>
  simulatedModel({
    config: simulatorConfigSchema.parse({ provider: "simulator", hardRate: 0, noise: 0, ...config }),
    solve: knowledgeOf(tasks),
  });

const instructions = (role: string) =>
  `You are the ${role} of a team that solves a word problem one calculation at a time.`;
const given = (task: Task) => `Problem: ${task.text}\n\nSolve it one calculation at a time.`;
const tool = (name: string) => ({ name, parameters: {} });

describe("the lines of a team", () => {
  it("are found by their form, in whatever they are wrapped", () => {
    const texts = [
      "Problem: 3 + 4 of 7 friends had 12 = twelve apples",
      '[{"type": "text", "text": "Plan 1: 16 - 3\\n"}]',
      "Here is the final answer from your managed agent 'solver':\n16 - 3 = 13",
      "planner : Plan 2: previous * 2.5 (last)\n\nsolver : 13 * 2.5 = 32.5",
      "> **Checked: the final answer is -32.5.**",
    ];
    expect(linesIn(texts).map(({ agent, content }) => `${agent} ${content}`)).toEqual([
      "planner Plan 1: 16 - 3",
      "solver 16 - 3 = 13",
      "planner Plan 2: previous * 2.5 (last)",
      "solver 13 * 2.5 = 32.5",
      "verifier Checked: the final answer is -32.5.",
    ]);
  });

  it("say whose turn it is", () => {
    const lines = linesIn([
      "Plan 1: 16 - 3\n16 - 3 = 13\nPlan 2: previous * 2 (last)\n13 * 2 = 26\nChecked: the final answer is 26.",
    ]);
    const speakers = lines.map((_, index) => nextSpeaker(lines.slice(0, index)));
    expect([...speakers, nextSpeaker(lines)]).toEqual([
      "planner",
      "solver",
      "planner",
      "solver",
      "verifier",
      undefined,
    ]);
    expect(lines.map((_, index) => isWorkedOut(lines.slice(0, index + 1)))).toEqual([false, false, false, true, true]);
  });

  it("are not seen in the prompts that ask for them", () => {
    for (const role of ["planner", "solver", "verifier"] as const) {
      const prompt = readFileSync(shippedPath("synth", "systems", "support", "prompts", `${role}.md`), "utf8");
      expect(linesIn([prompt])).toEqual([]);
      expect(roleIn(prompt)).toBe(role);
    }
  });

  it("follow a problem that ends at the blank line, also inside JSON", () => {
    expect(problemIn(["nothing", "New task:\nProblem: How many?\n\nSolve it"])).toBe("How many?");
    expect(problemIn([JSON.stringify("Problem: How many?\n\nSolve it")])).toBe("How many?");
    expect(problemIn(["Problem: the last line"])).toBe("the last line");
  });
});

/** One team in each dialect, as its framework words it; returns the answer that it comes to. */
const TEAMS: Record<string, (ask: Ask, task: Task) => Promise<string>> = {
  async team(ask, task) {
    const messages: ChatRequest["messages"][number][] = [{ role: "user", content: given(task) }];
    for (let turn = 0; turn < 60; turn++) {
      const role = nextSpeaker(linesIn(messages.map(({ content }) => content)));
      if (role === undefined) break;
      const { content } = await ask({ messages: [{ role: "system", content: instructions(role) }, ...messages] });
      messages.push({ role: "user", name: role, content });
    }
    return messages.at(-1)?.content ?? "";
  },
  async "autogen-selector"(ask, task) {
    let history = `user : ${given(task)}`;
    for (let turn = 0; turn < 60; turn++) {
      const choose =
        "Read the above conversation. Then select the next role from ['planner', 'solver', 'verifier'] to play. Only return the role.";
      const { content: role } = await ask({
        messages: [{ role: "user", content: `Roles…\n\n${history}\n\n${choose}` }],
      });
      const { content } = await ask({
        messages: [
          { role: "system", content: instructions(role) },
          { role: "user", content: history },
        ],
      });
      history += `\n\n${role} : ${content}`;
      if (content.includes("final answer is")) break;
    }
    return history;
  },
  async "langgraph-supervisor"(ask, task) {
    const messages: ChatRequest["messages"][number][] = [{ role: "user", content: given(task) }];
    const tools = ["transfer_to_verifier", "transfer_to_planner", "transfer_to_solver"].map(tool);
    for (let turn = 0; turn < 60; turn++) {
      const { content, toolCalls } = await ask({
        messages: [{ role: "system", content: "You supervise" }, ...messages],
        tools,
      });
      const [call] = toolCalls;
      if (call === undefined) return content;
      messages.push({ role: "assistant", content: "", toolCalls });
      messages.push({ role: "tool", content: "Successfully transferred", toolCallId: call.id });
      const role = call.name.replace("transfer_to_", "");
      const said = await ask({ messages: [{ role: "system", content: instructions(role) }, ...messages] });
      messages.push({ role: "assistant", name: role, content: said.content });
    }
    return "";
  },
  async smolagents(ask, task) {
    const messages: ChatRequest["messages"][number][] = [{ role: "user", content: `New task:\n${given(task)}` }];
    const tools = ["final_answer", "solver", "verifier"].map(tool);
    for (let turn = 0; turn < 60; turn++) {
      const system = { role: "system", content: `You are an expert. ${instructions("planner")}` } as const;
      const [call] = (await ask({ messages: [system, ...messages], tools })).toolCalls;
      if (call === undefined) return "";
      const args = JSON.parse(call.arguments);
      if (call.name === "final_answer") return args.answer;
      const isSolver = call.name === "solver";
      const managed = await ask({
        messages: [
          {
            role: "system",
            content: `${isSolver ? "code blobs: final_answer(image)" : ""} ${instructions(call.name)}`,
          },
          { role: "user", content: `You're a helpful agent. Task:\n${args.task}\n\nYou're helping your manager` },
        ],
        ...(isSolver ? {} : { tools: [tool("final_answer")] }),
      });
      const code = /<code>\nfinal_answer\((".*")\)\n<\/code>/su.exec(managed.content)?.[1];
      const said = isSolver ? JSON.parse(code ?? '""') : JSON.parse(managed.toolCalls[0]?.arguments ?? "{}").answer;
      messages.push({ role: "assistant", content: `Calling tools:\n${JSON.stringify([{ function: call }])}` });
      messages.push({
        role: "user",
        content: `Observation:\nHere is the final answer from your managed agent:\n${said}`,
      });
    }
    return "";
  },
};

type Ask = (request: ChatRequest) => Promise<ChatResponse>;

describe.each(Object.entries(TEAMS))("the dialect %s", (_, play) => {
  const solvedBy = async (config: Partial<SimulatorConfig>): Promise<number> => {
    const simulated = model(config);
    let solved = 0;
    for (const task of tasks) {
      let call = 0;
      const answer = await play(
        (request) => simulated.complete({ ...request, seed: stream(7, task.id, call++).int(2 ** 31) }),
        task,
      );
      solved += Number((await gsm8k.check(task, String(lastNumber(answer)))).success);
    }
    return solved / tasks.length;
  };

  it("solves every problem without a mistake", async () => {
    expect(await solvedBy({})).toBe(1);
  });

  it("errs: a mistake carries on to the answer", async () => {
    // Nine of ten runs have an error at the hard step; a few are harmless.
    const solved = await solvedBy({ hardRate: 1, regime: "systematic" });
    expect(solved).toBeGreaterThan(0.02);
    expect(solved).toBeLessThan(0.35);
  });
});

describe("each dialect", () => {
  it("claims no request of another's team", async () => {
    const foreign: string[] = [];
    for (const [name, play] of Object.entries(TEAMS)) {
      await play(async (request) => {
        const claims = dialects.filter((dialect) => dialect.read(request) !== undefined).map(({ id }) => id);
        for (const id of claims) if (id !== name && id !== "team") foreign.push(`${id} claims a request of ${name}`);
        return model({}).complete({ ...request, seed: 1 });
      }, tasks[0]!);
    }
    expect(foreign).toEqual([]);
    expect(readRequest({ messages: [{ role: "user", content: "hello" }] })).toBeUndefined();
  });
});

describe("the simulator's chat completions", () => {
  let close = async (): Promise<void> => {};
  let client: OpenAI;
  beforeAll(async () => {
    const server = await serveSimulator({ model: model({}), port: 0, now: () => new Date(0) });
    close = server.close;
    client = new OpenAI({ baseURL: server.url, apiKey: "none" });
  });
  afterAll(() => close());

  const request = () => ({
    model: "simulator",
    messages: [
      { role: "developer" as const, content: "You supervise" },
      { role: "user" as const, content: [{ type: "text" as const, text: given(tasks[0]!) }] },
      {
        role: "assistant" as const,
        content: null,
        tool_calls: [
          { id: "c1", type: "function" as const, function: { name: "transfer_to_planner", arguments: "{}" } },
        ],
      },
      { role: "tool" as const, tool_call_id: "c1", content: "Plan 1: 16 - 3" },
    ],
    tools: ["planner", "solver"].map((name) => ({
      type: "function" as const,
      function: { name: `transfer_to_${name}`, parameters: { type: "object" } },
    })),
  });

  it("take parts, null contents, tool messages and tools, and give tool calls", async () => {
    const answer = await client.chat.completions.create(request());
    expect(answer.choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        content: null,
        tool_calls: [{ type: "function", function: { name: "transfer_to_solver", arguments: "{}" } }],
      },
    });
    const again = await client.chat.completions.create(request());
    // As from a real server: another attempt has other ids.
    expect(again.id).not.toBe(answer.id);
    expect(again.choices[0]?.message.tool_calls?.[0]?.id).not.toBe(answer.choices[0]?.message.tool_calls?.[0]?.id);
  });

  it("stream tool calls piece by piece", async () => {
    const messages = [
      { role: "system" as const, content: `You are an expert. ${instructions("planner")}` },
      { role: "user" as const, content: given(tasks[0]!) },
    ];
    const tools = ["final_answer", "solver"].map((name) => ({ type: "function" as const, function: { name } }));
    const asked = { model: "simulator", seed: 5, messages, tools };
    const whole = (await client.chat.completions.create(asked)).choices[0]?.message.tool_calls?.[0];
    const streamed = { id: "", name: "", arguments: "", pieces: 0 };
    for await (const chunk of await client.chat.completions.create({ ...asked, stream: true })) {
      for (const call of chunk.choices[0]?.delta.tool_calls ?? []) {
        streamed.id += call.id ?? "";
        streamed.name += call.function?.name ?? "";
        streamed.arguments += call.function?.arguments ?? "";
        streamed.pieces++;
      }
    }
    expect(streamed.pieces).toBeGreaterThan(2);
    expect(whole).toEqual({
      id: streamed.id,
      type: "function",
      function: { name: streamed.name, arguments: streamed.arguments },
    });
    expect(JSON.parse(streamed.arguments).task).toContain("Plan 1: ");
  });
});
