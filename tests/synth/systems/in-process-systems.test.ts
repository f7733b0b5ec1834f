import { describe, expect, it } from "vitest";
import { scriptedModel } from "../../../src/models/scripted.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import { identityFault, recordRun, rerun } from "../../../synth/replay.ts";
import { bubblewrapSandbox } from "../../../synth/sandbox/bubblewrap.ts";
import { blackjackTable } from "../../../synth/systems/blackjack/system.ts";
import { runAssertions } from "../../../synth/systems/coder-tester/run-assertions.ts";
import { coderTester } from "../../../synth/systems/coder-tester/system.ts";
import { plannerSolverVerifier } from "../../../synth/systems/planner-solver-verifier/system.ts";
import { systems } from "../../../synth/systems/registry.ts";
import { createLibrary } from "../../../synth/systems/searcher/library.ts";
import { searcher } from "../../../synth/systems/searcher/system.ts";
import { blackjack, sessionOf } from "../../../synth/tasks/blackjack/blackjack.ts";
import { createTable } from "../../../synth/tasks/blackjack/table.ts";
import { hotpotqa, searchableOf } from "../../../synth/tasks/hotpotqa/hotpotqa.ts";
import { math } from "../../../synth/tasks/math/math.ts";
import { mbppPlus } from "../../../synth/tasks/mbppplus/mbppplus.ts";
import type { TaskSet } from "../../../synth/tasks/task-set.ts";

const first = async (taskSet: TaskSet, id?: string): Promise<Task> => {
  const tasks = await taskSet.load({ seed: 1, limit: 1000 });
  const task = id === undefined ? tasks[0] : tasks.find((one) => one.id === id);
  if (task === undefined) throw new Error("no task");
  return task;
};
const lastLog = (request: { readonly messages: readonly { readonly content: string }[] } | undefined): string =>
  request?.messages.at(-1)?.content ?? "";

describe("every in-process system", () => {
  it.each(systems.map((system) => [system.id, system] as const))("%s says what it is", (_, system) => {
    expect(system.agents.length).toBeGreaterThan(1);
    expect(system.sideEffects).toBe("none");
    expect(system.stepPolicy).toBe("per-call");
  });
});

describe("coder-tester", () => {
  const RIGHT = "```python\ndef similar_elements(a, b):\n    return tuple(set(a) & set(b))\n```";
  const WRONG = "```python\ndef similar_elements(a, b):\n    return tuple(a)\n```";
  const TEST = "```python\nassert set(similar_elements((3, 4, 5, 6), (5, 7, 4, 10))) == {4, 5}\n```";

  it("shows the coder what the tester's assertions did in the sandbox, and answers with the last code", async () => {
    const task = await first(mbppPlus, "mbpp-2");
    const model = scriptedModel([WRONG, TEST, RIGHT, TEST, `<think>same</think>${RIGHT}`]);
    const recording = await recordRun({ system: coderTester, taskSet: mbppPlus, task }, model);
    expect(recording.outcome.success).toBe(true);
    expect(model.requests.map(({ options }) => options.agent)).toEqual(["coder", "tester", "coder", "tester", "coder"]);
    expect(lastLog(model.requests[2]?.request)).toContain("> sandbox: 1 of 1 assertions do not hold: `assert set(");
    expect(lastLog(model.requests[4]?.request)).toContain("> sandbox: all 1 assertions hold.");
    expect(await identityFault({ system: coderTester, taskSet: mbppPlus, task }, recording)).toBeUndefined();
  });

  it("is rerun with a corrected step: the tool runs again on what the correction says", async () => {
    const task = await first(mbppPlus, "mbpp-2");
    const setting = { system: coderTester, taskSet: mbppPlus, task };
    const recording = await recordRun(setting, scriptedModel([WRONG, "no tests", WRONG, "no tests", WRONG]));
    expect(recording.outcome.success).toBe(false);
    const live = scriptedModel([TEST, RIGHT]);
    const { outcome, liveCalls } = await rerun(setting, recording.tape, { at: 2, action: RIGHT }, live);
    expect([outcome.success, liveCalls]).toEqual([true, 2]);
    expect(lastLog(live.requests[0]?.request)).toContain("> sandbox: no assertions were given.");
  });

  it.each([
    ["code that does not run", "def f(:", "the code does not run: SyntaxError"],
    ["an endless loop", "while True: pass", "ran too long"],
    ["an exit", "import os\nos._exit(0)", "was not reached"],
    ["an exception", "def f(x): return 1 / 0", "raises ZeroDivisionError"],
  ])("reports %s", async (_, code, said) => {
    expect(await runAssertions(code, "```python\nassert f(1) == 2\n```", bubblewrapSandbox())).toContain(said);
  });

  it("runs nothing but single assertions of the tester", async () => {
    const hostile = "```python\nimport os\nos._exit(0)\nassert f(1) == 2\n```";
    expect(await runAssertions("def f(x): return 2", hostile, bubblewrapSandbox())).toBe("all 1 assertions hold.");
  });
});

describe("searcher", () => {
  const script = (first: string, second: string) => [
    "Hop 1: look up the magazine",
    first,
    "Note: something",
    "Hop 2: look up the other (last)",
    second,
    "Note: something else",
    "Answer: forty-two",
  ];

  it("finds paragraphs by title and by words, and sentences in the last one", async () => {
    const task = await first(hotpotqa);
    const paragraph = searchableOf(task).paragraphs[3];
    const word = paragraph?.sentences[0]?.split(" ")[0] ?? "";
    const model = scriptedModel(script(`Search[${paragraph?.title}]`, `Lookup[${word}]`));
    const { answer } = await searcher.run(task, model);
    expect(answer).toBe("forty-two");
    expect(lastLog(model.requests[2]?.request)).toContain(
      `> library: [${paragraph?.title}] ${paragraph?.sentences[0]?.trim()}`,
    );
    expect(lastLog(model.requests[5]?.request)).toContain(`> library: [${paragraph?.title}] `);
    expect(model.requests.map(({ options }) => options.agent)).toEqual([
      "planner",
      "searcher",
      "reader",
      "planner",
      "searcher",
      "reader",
      "answerer",
    ]);
  });

  it.each([
    ["no tool", "I will look.", "say Search[QUERY] or Lookup[WORDS]."],
    ["a lookup before any search", "Lookup[x]", "there is no last paragraph."],
    ["words that stand nowhere", "Search[zzzzqqq]", "nothing found."],
    ["brackets in the query", "Search[[[)(*+?]", "nothing found."],
  ])("answers to %s", async (_, action, said) => {
    const task = await first(hotpotqa);
    const model = scriptedModel(script(action, action));
    await searcher.run(task, model);
    expect(lastLog(model.requests[2]?.request)).toContain(`> library: ${said}`);
  });

  it("stops a planner that never ends", async () => {
    const model = scriptedModel([{ answer: "Hop 1: look up more" }]);
    await searcher.run(await first(hotpotqa), model);
    expect(model.requests).toHaveLength(4 * 3 + 1);
  });

  it("finds every supporting paragraph of the shipped questions by its title", async () => {
    for (const task of await hotpotqa.load({ seed: 1, limit: 100 })) {
      const { paragraphs, supporting } = searchableOf(task);
      const library = createLibrary(paragraphs);
      for (const { title } of supporting) expect(library.search(title)?.title).toBe(title);
    }
  });
});

describe("blackjack-table", () => {
  /** A task in which no blackjack takes a hand's decision away. */
  const twoHands = async (): Promise<Task> => {
    for (const task of await blackjack.load({ seed: 1, limit: 50 })) {
      const { shoe, hands } = sessionOf(task);
      const table = createTable(shoe, hands);
      const hand = (): number | undefined => table.open?.handNumber;
      if (hand() !== 1) continue;
      table.play("stand");
      if (hand() === 2) return task;
    }
    throw new Error("no such task");
  };

  it("shows the table before each hand's decision and plays what the player says", async () => {
    const task = await twoHands();
    const model = scriptedModel([
      { when: "Turn: player", answer: "Action: stand" },
      { answer: "Hand: hard 12 of 2 cards against 5" },
    ]);
    const { answer } = await blackjackTable.run(task, model);
    expect(answer).toBe("hand 1: stand; hand 2: stand");
    expect(lastLog(model.requests[0]?.request)).toMatch(
      /Log:\n> table: hand 1, your cards \S+ \S+, the dealer shows \S+, you may hit, stand, double\n/u,
    );
    expect(lastLog(model.requests[3]?.request)).toContain("> table: hand 2, ");
  });

  it("takes a double that is not allowed for a hit and mumbling for a stand, so every session ends", async () => {
    for (const task of await blackjack.load({ seed: 2, limit: 20 })) {
      for (const said of ["double", "hmm", "HIT ME", "split"]) {
        const { answer } = await blackjackTable.run(task, scriptedModel([{ answer: said }]));
        expect(answer).toMatch(/^hand \d: /u);
        expect((await blackjack.check(task, answer)).detail ?? "").not.toContain("no record");
      }
    }
  });
});

describe("planner-solver-verifier on MATH", () => {
  it.each([
    ["Checked: the final answer is \\frac{3}{4}.", "\\frac{3}{4}"],
    ["The final answer is $\\boxed{\\left(1,-\\frac32\\right)}$.", "\\left(1,-\\frac32\\right)"],
    ["Checked: the final answer is x^2-5x-14.", "x^2-5x-14"],
    ["Checked: the final answer is 44+32i.", "44+32i"],
    ["Checked: the final answer is 18.", "18"],
    ["Checked: the final answer is $1,250 dollars.", "1250"],
    ["Checked: the final answer is -2.5", "-2.5"],
    ["I cannot tell.", undefined],
  ])("reads %s", async (verdict, answer) => {
    const task = await first(math);
    const model = scriptedModel(["Plan 1: 1 + 1 (last)", "1 + 1 = 2", verdict]);
    expect(await plannerSolverVerifier.run(task, model)).toEqual({ answer });
  });
});
