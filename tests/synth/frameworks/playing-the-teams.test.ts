import { beforeAll, describe, expect, it } from "vitest";
import type { ChatMessage, ChatModel, ToolDefinition } from "../../../src/models/chat-model.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import { dialects } from "../../../synth/simulator/dialects/registry.ts";
import { knowledgeOf } from "../../../synth/simulator/knowledge.ts";
import {
  type SimulatorConfig,
  type SimulatorDecision,
  simulatedModel,
  simulatorConfigSchema,
} from "../../../synth/simulator/simulator.ts";
import { gsm8k } from "../../../synth/tasks/gsm8k.ts";
import { checkNumeric } from "../../../synth/tasks/numeric-checker.ts";

/*
 * The simulator in the teams of CAMEL, CrewAI, AFlow and AgentPrune, without the frameworks: their requests are built
 * here, in words of our own but for the phrases by which the dialects know them.
 */

const instructions = (role: string): string =>
  `You are the ${role} of a team that solves a word problem one calculation at a time.`;
const given = ({ text }: Task): string => `Problem: ${text}\n\nSolve it one calculation at a time.`;
const RULE = "==============================";
const between = (text: string): string => `${RULE}\n${text}\n${RULE}\n\n`;

type Ask = (messages: readonly ChatMessage[], tools?: readonly ToolDefinition[]) => Promise<ChatMessage>;
type Team = (task: Task, ask: Ask) => Promise<string>;

const system = (content: string): ChatMessage => ({ role: "system", content });
const user = (content: string): ChatMessage => ({ role: "user", content });

const teams: Record<string, Team> = {
  async "camel-workforce"(task, ask) {
    const say = async (role: string, prompt: string) => (await ask([system(instructions(role)), user(prompt)])).content;
    const workers = "<id-s>:<The solver: …>:<>\n<id-v>:<The verifier: …>:<>\n";
    const split = await say(
      "planner",
      `You need to either decompose a complex task or enhance a simple one\n\n${between(given(task))}${between(workers)}`,
    );
    const tasks = [...split.matchAll(/<task>(.*?)<\/task>/gu)].map(([, content]) => content ?? "");
    const listed = tasks.map((content, index) => `Task ID: 0.${index + 1}\nContent: ${content}\n---\n`).join("");
    const assigned = await ask([
      system("You are the coordinator."),
      user(`You need to assign multiple tasks to worker nodes\n${between(listed)}${between(workers)}`),
    ]);
    const done: string[] = [];
    for (const { task_id, assignee_id, dependencies } of JSON.parse(assigned.content).assignments) {
      const content = tasks[done.length] ?? "";
      expect(task_id).toBe(`0.${done.length + 1}`);
      expect(dependencies).toHaveLength(done.length);
      const prompt = [
        "You need to process one given task and return only a JSON result.\n\n",
        `Here is the content of the task that you need to do:\n${between(content)}`,
        `Here is the content of the parent task for you to refer to:\n${between(given(task))}`,
        `Here are results of some prerequisite tasks that you can refer to:\n\n${between(done.join("\n"))}`,
      ].join("");
      const result = JSON.parse(await say(assignee_id === "id-s" ? "solver" : "verifier", prompt));
      done.push(`id: ${task_id}, content: ${content}. result: ${result.content}.`);
      const judged = await say("planner", `You are analyzing a task to evaluate its quality\n${result.content}`);
      expect(JSON.parse(judged)).toMatchObject({ recovery_strategy: null });
    }
    return done.at(-1) ?? "";
  },

  async crewai(task, ask) {
    const role = (name: string, kind: string) =>
      system(`You are ${name}. ${instructions(kind)}\nYour personal goal is: to do it`);
    const demand = (context: readonly string[]) =>
      user(`\nCurrent Task: ${given(task)}\n\nThis is the context you're working with:\n${context.join("\n----\n")}`);
    const plan = (await ask([role("planner", "planner"), demand([])])).content;
    const messages = [role("solver", "solver"), demand([plan])];
    const board: string[] = [];
    const tools = [{ name: "write_on_board", parameters: {} }];
    let working = await ask(messages, tools);
    for (; working.toolCalls !== undefined && working.toolCalls.length > 0; working = await ask(messages, tools)) {
      expect(board.length).toBeLessThan(24);
      const call = working.toolCalls[0];
      board.push(JSON.parse(call?.arguments ?? "{}").line);
      messages.push(working, { role: "tool", content: board.join("\n"), toolCallId: call?.id ?? "" });
    }
    const checks = [
      await ask([role("checker", "verifier"), demand([plan, working.content])]),
      await ask([role("auditor", "verifier"), demand([working.content])]),
    ];
    return (await ask([role("verifier", "verifier"), demand(checks.map(({ content }) => content))])).content;
  },

  async aflow(task, ask) {
    const said = [given(task)];
    const say = async (role: string) =>
      (await ask([user(`${instructions(role)}\nWrite one line.\n\n${said.join("\n\n")}`)])).content;
    for (let calculation = 0; calculation < 24 && said.at(-2)?.endsWith("(last)") !== true; calculation++) {
      said.push(await say("planner"));
      said.push(await say("solver"));
    }
    const votes = [await say("verifier"), await say("verifier"), await say("verifier")];
    const listed = votes.map((vote, index) => `${"ABC"[index]}: \n${vote}\n\n\n`).join("");
    const { content } = await ask([user(`They are:\n${listed}\n<solution_letter>a letter</solution_letter>`)]);
    const letter = /<solution_letter>(.)</u.exec(content)?.[1] ?? "A";
    return votes["ABC".indexOf(letter)] ?? "";
  },

  async agentprune(task, ask) {
    const example = "\nQ: 1 + 1? (Hint: The answer is near to 2).\nA: The answer is 2\n\nQ: 2 + 2?\nA: The answer is 4";
    const hinted = async (hints: string) =>
      ask([
        system("You are a math expert. Go on."),
        user(`${example}\n\nQ:${task.text}(Hint: The answer is near to${hints}).`),
      ]);
    const first = await hinted("");
    const other = "Agent Zz9y as a Inspector his answer to this question is:\n\nThe answer is 98765\n\n";
    const quoted = `${other}Agent a1B2 as a Math Solver his answer to this question is:\n\n${first.content}\n\n \n\n`;
    const code = await ask([
      system("You are a programming expert. Go on."),
      user(
        `${example}\n\nQ:${task.text}At the same time, there are the following responses to the same question for your reference:\n\n${quoted}`,
      ),
    ]);
    const value = /answer = (\S+)/u.exec(code.content)?.[1] ?? "";
    const again = await hinted(` ${value}`);
    const decision = await ask([
      system("You are the top decision-maker.\n Give reasons."),
      user(
        `${example} The task is:\n\n ${task.text}.\n At the same time, the output of other agents is as follows:\n\na1B2: ${again.content}\n\n`,
      ),
    ]);
    return decision.content;
  },
};

let tasks: readonly Task[] = [];
beforeAll(async () => {
  tasks = await gsm8k.load({ seed: 1, limit: 60 });
});

function playing(config: Partial<SimulatorConfig>): {
  readonly model: ChatModel;
  readonly decisions: SimulatorDecision[];
} {
  const decisions: SimulatorDecision[] = [];
  const model = simulatedModel({
    config: simulatorConfigSchema.parse({ provider: "simulator", hardRate: 0, noise: 0, ...config }),
    solve: knowledgeOf(tasks),
    onDecision: (decision) => decisions.push(decision),
  });
  return { model, decisions };
}

const asking =
  (model: ChatModel, seed: number): Ask =>
  async (messages, tools) => {
    const { content, toolCalls } = await model.complete({ messages, seed, ...(tools === undefined ? {} : { tools }) });
    return { role: "assistant", content, toolCalls };
  };

describe.each(Object.entries(teams))("the simulator in the team of %s", (name, team) => {
  it("solves every problem when it does not err", async () => {
    const { model, decisions } = playing({});
    for (const task of tasks) {
      expect(checkNumeric(task, await team(task, asking(model, 0)))).toMatchObject({ success: true });
    }
    expect(decisions.every(({ erred }) => erred === null)).toBe(true);
  });

  it("errs at the noise it is given, at any of its turns; a run without an error succeeds, most with one fail", async () => {
    const noise = 0.5;
    const { model, decisions } = playing({ noise });
    const steps = new Set<number>();
    let [erring, failedErring, runs] = [0, 0, 0];
    for (const task of tasks) {
      for (const seed of [1, 2, 3, 4]) {
        decisions.length = 0;
        const { success } = checkNumeric(task, await team(task, asking(model, seed)));
        const erred = decisions.filter((decision) => decision.erred !== null);
        for (const { step } of erred) steps.add(step);
        runs++;
        if (erred.length === 0) expect(success).toBe(true);
        else erring++;
        if (erred.length > 0 && !success) failedErring++;
      }
    }
    expect(steps.size).toBeGreaterThan(3);
    // Half of the runs of this noise, give or take four standard deviations; votes and checks add a few errors of no effect.
    expect(erring / runs).toBeGreaterThan(0.2);
    expect(failedErring / erring).toBeGreaterThan(0.5);
  });

  it("makes requests that its own dialect reads, and no other but the general one", async () => {
    const { model } = playing({});
    const claims: string[] = [];
    await team(tasks[0]!, (messages, tools) => {
      const request = { messages, ...(tools === undefined ? {} : { tools }) };
      claims.push(
        dialects
          .filter(({ id, read }) => id !== "team" && read(request) !== undefined)
          .map(({ id }) => id)
          .join(" and "),
      );
      return asking(model, 0)(messages, tools);
    });
    expect(claims.length).toBeGreaterThan(3);
    expect(new Set(claims)).toEqual(new Set([name]));
  });
});

it("ends the working of a crew whose plan cannot be carried out, without another line on the board", async () => {
  const { model } = playing({});
  const plan = "Plan 1: 1 / 0 (last)";
  const messages = [
    system(`You are solver. ${instructions("solver")}\nYour personal goal is: to do it`),
    user(`\nCurrent Task: ${given(tasks[0]!)}\n\nThis is the context you're working with:\n${plan}`),
  ];
  const said = await asking(model, 0)(messages, [{ name: "write_on_board", parameters: {} }]);
  expect(said).toMatchObject({ content: "I cannot tell.", toolCalls: [] });
});

it("gives an ensemble the letter of the solution that is given most often, the first of equals", async () => {
  const { model } = playing({});
  const letterOf = async (...solutions: string[]) => {
    const listed = solutions.map((solution, index) => `${"ABCD"[index]}: \n${solution}\n\n\n`).join("");
    const said = await asking(model, 0)([user(`They are:\n${listed}\n<solution_letter>a letter</solution_letter>`)]);
    return /<solution_letter>(.)</u.exec(said.content)?.[1];
  };
  expect(await letterOf("18", "26", "26")).toBe("B");
  expect(await letterOf("18", "26", "18", "26")).toBe("A");
});
