import { describe, expect, it } from "vitest";
import { RootstepError } from "../../src/errors.ts";
import type { ChatModel, ChatRequest } from "../../src/models/chat-model.ts";
import type { Step } from "../../src/trajectory/schema.ts";
import { proposeCorrection } from "../../synth/analyzer/analyzer.ts";
import { readAction } from "../../synth/analyzer/ask-for-action.ts";
import { hintFor, proposePlacebo } from "../../synth/analyzer/control-arms.ts";
import { editShare, editSize, levenshtein } from "../../synth/analyzer/edit-size.ts";
import { leakOf } from "../../synth/analyzer/leak-guard.ts";
import { recordRun, type Setting } from "../../synth/replay.ts";
import { stepsFromCalls } from "../../synth/tape/tape.ts";
import { bench, FLAWLESS } from "./setting.ts";

/** Answers in order and keeps what it was asked. */
function answering(...answers: string[]): ChatModel & { readonly asked: ChatRequest[] } {
  const asked: ChatRequest[] = [];
  return {
    id: "answers",
    asked,
    async complete(request) {
      asked.push(request);
      const content = answers[asked.length - 1] ?? "";
      return { content, toolCalls: [], finishReason: "stop", model: "answers" };
    },
  };
}

describe("the leak guard", () => {
  const context = {
    original: "Plan 2: previous - 5",
    visible: "16 eggs, eats 3, bakes 4\nPlan 1: 16 - 3\n16 - 3 = 13",
    answer: "18",
  };
  it.each([
    ["the bare answer", "The answer is 18", true],
    ["the answer in a plan", "Plan 2: 18 + 0", true],
    ["an equation whose numbers stand nowhere", "9 * 2 = 18", true],
    ["an equation that is false", "13 + 4 = 18", true],
    ["an ordinary correction", "Plan 2: previous - 4", false],
    ["another number that contains it", "Plan 2: 180 - 4", false],
  ])("%s: %s", (_, correction, leaks) => {
    expect(leakOf(correction, context) !== undefined).toBe(leaks);
  });
  it("lets a step state the answer that its own arithmetic reaches, or that the log has", () => {
    const reached = { original: "9 * 2 = 19", visible: "9 left, sold for 2 dollars", answer: "18" };
    expect(leakOf("9 * 2 = 18", reached)).toBeUndefined();
    expect(leakOf("Checked: the final answer is 18.", { ...reached, visible: "9 * 2 = 18" })).toBeUndefined();
  });
});

describe("the analyzer", () => {
  const failedRun = async () => {
    const { settings, model } = await bench("gsm8k", 1);
    const setting = settings[0] as Setting;
    const recording = await recordRun(setting, model(FLAWLESS));
    return { task: setting.task, steps: stepsFromCalls(recording.tape.calls) };
  };

  it("reads the action from reasoning, fences and prose around the JSON", async () => {
    const { task, steps } = await failedRun();
    const model = answering(
      '<think>{"action": "no"}</think>Here:\n```json\n{"action": "Plan 1: 16 - 3", "reason": "so"}\n```',
    );
    expect(await proposeCorrection(task, steps, 0, { model, attempts: 3 })).toMatchObject({
      action: "Plan 1: 16 - 3",
      attempts: 1,
      editSize: 0,
    });
  });

  it("asks again after nonsense or a leak, says why, and gives up with the reasons", async () => {
    const { task, steps } = await failedRun();
    const model = answering("I refuse.", '{"action": "The answer is 18."}', '{"act": 1}');
    const proposal = await proposeCorrection(task, steps, 0, { model, attempts: 3 });
    expect(proposal.action).toBeUndefined();
    expect(proposal.rejected).toEqual([
      "the model declined",
      "it states the final answer 18 before the run has reached it",
      "the answer is not the JSON asked for",
    ]);
    expect(proposal.counts).toEqual({ usable: 0, nonsense: 1, refused: 1, leaked: 1, rewritten: 0 });
    expect(proposal.attempts).toBe(3);
    expect(model.asked[2]?.messages[1]?.content).toContain("refused: it states the final answer 18");
  });

  it("takes words of its own instructions for nonsense: small models hand the form back", async () => {
    const { task, steps } = await failedRun();
    const model = answering('{"action": "the whole text of the step as the agent should have written it"}');
    const proposal = await proposeCorrection(task, steps, 0, { model, attempts: 1 });
    expect(proposal.action).toBeUndefined();
    expect(proposal.rejected).toEqual(["the action repeats the instructions"]);
    expect(proposal.counts).toMatchObject({ usable: 0, nonsense: 1 });
  });

  it("measures how much of a step was changed", () => {
    expect(editSize("Plan 1: 16 - 3", "Plan 1: 16 - 3")).toBe(0);
    expect(editSize("Plan 1: 16 - 3", "Plan 1: 16 - 4")).toBe(2);
    expect(editSize("abc", "")).toBe(3);
  });

  it("asks for structured output, and for plain JSON where the server refuses it", async () => {
    const { task, steps } = await failedRun();
    const asked: ChatRequest[] = [];
    const plain: ChatModel = {
      id: "plain",
      async complete(request) {
        asked.push(request);
        if (request.responseFormat !== undefined) {
          throw new RootstepError("MODEL_REFUSED_REQUEST", { what: "response_format is not supported" });
        }
        return { content: '{"action": "Plan 1: 16 - 3"}', toolCalls: [], finishReason: "stop", model: "plain" };
      },
    };
    const proposal = await proposeCorrection(task, steps, 0, { model: plain, attempts: 1 });
    expect(proposal).toMatchObject({ action: "Plan 1: 16 - 3", attempts: 1 });
    expect(asked[0]?.responseFormat).toMatchObject({
      type: "json_schema",
      schema: { required: ["action", "reason"], additionalProperties: false },
    });
    expect(asked[1]?.responseFormat).toBeUndefined();
  });

  it("passes other errors of the model on", async () => {
    const { task, steps } = await failedRun();
    const away: ChatModel = {
      id: "away",
      complete: () => Promise.reject(new RootstepError("MODEL_UNREACHABLE", { what: "no server" })),
    };
    await expect(proposeCorrection(task, steps, 0, { model: away, attempts: 3 })).rejects.toThrow("no server");
  });

  it("shows the problem, the answer, the history, what tools answered, and how the run ended", async () => {
    const { task, steps } = await failedRun();
    const model = answering('{"action": "x y z"}');
    await proposeCorrection(task, steps, 2, {
      model,
      attempts: 1,
      shown: "Log:\n0 planner: no\n> table: the dealer shows 6",
      outcome: { success: false, checker: "numeric", answer: "26", detail: "26 is not 18" },
    });
    const shown = model.asked[0]?.messages[1]?.content ?? "";
    expect(shown).toContain(task.text);
    expect(shown).toContain("Right final answer: 18");
    expect(shown).toContain(
      `0 planner: ${steps[0]?.content}\n1 solver: ${steps[1]?.content}\n\nStep under examination: 2`,
    );
    expect(shown).not.toContain(`3 ${steps[3]?.agent}: ${steps[3]?.content}`);
    expect(shown).toContain("> table: the dealer shows 6");
    expect(shown).not.toContain("0 planner: no");
    expect(shown).toContain("It answered: 26. The checker said: 26 is not 18.");
  });

  const long = "First we take the sixteen eggs of the day and subtract the three that she eats herself.";
  const stepOf = (content: string): Step[] => [
    { index: 0, agent: "solver", kind: "message", content, toolCalls: [], retrieved: [], callIds: [] },
  ];

  it("asks once more for a smaller edit where most of the step is changed, and takes the smaller", async () => {
    const { task } = await failedRun();
    const [whole, small] = ["Let me do this in another manner altogether: compute all totals anew.", `${long} Right.`];
    const model = answering(`{"action": "${whole}"}`, `{"action": "${small}"}`, '{"action": "never asked"}');
    const proposal = await proposeCorrection(task, stepOf(long), 0, { model, attempts: 3 });
    expect(proposal).toMatchObject({ action: small, attempts: 2, counts: { usable: 2 } });
    expect(model.asked[1]?.messages[1]?.content).toContain("it changes most of the step");
    // 2 inserted tokens ("Right", ".") of 20.
    expect(proposal.action === undefined ? undefined : proposal.editShare).toBeCloseTo(2 / 20, 12);
    const stubborn = answering(`{"action": "${whole}"}`, "no");
    expect(await proposeCorrection(task, stepOf(long), 0, { model: stubborn, attempts: 3 })).toMatchObject({
      action: whole,
      attempts: 2,
    });
  });

  it("drops a correction that rewrites a line as a treatise", async () => {
    const { task } = await failedRun();
    const model = answering(`{"action": "${"and then we go on ".repeat(30)}"}`);
    const proposal = await proposeCorrection(task, stepOf("Plan 1: 16 - 3"), 0, { model, attempts: 1 });
    expect(proposal.action).toBeUndefined();
    expect(proposal.counts).toMatchObject({ rewritten: 1 });
    expect(proposal.rejected[0]).toContain("rewrites a step of 6 words as one of 150");
  });
});

describe("reading an answer", () => {
  const read = (content: string, finishReason: "stop" | "length" | "content_filter" = "stop") =>
    readAction({ content, finishReason });
  it.each([
    ["reasoning without its opening tag", 'hm {"action": "no"}</think>{"action": "yes"}', "yes"],
    ["several objects", '{"note": 1} {"action": "first"} then {"action": "last"}', "last"],
    ["braces in the action", '{"action": "d = {1: {2: 3}}"}', "d = {1: {2: 3}}"],
    ["extra fields", '{"reason": null, "action": " a ", "confidence": 1}', "a"],
  ])("takes the action from %s", (_, content, action) => expect(read(content)).toEqual({ kind: "action", action }));
  it.each([
    ["reasoning that never ends", '<think>{"action": "no"}', "nonsense"],
    ["nothing", "  ", "nonsense"],
    ["another type", '{"action": 5}', "nonsense"],
    ["an empty action", '{"action": "  "}', "nonsense"],
    ["prose", "The step should be better.", "nonsense"],
    ["an apology", "I'm sorry, but that I must leave to others.", "refused"],
    ["null", '{"action": null, "reason": "cannot tell"}', "refused"],
  ])("calls %s by its name", (_, content, kind) => expect(read(content).kind).toBe(kind));
  it("tells a filtered answer and a cut one", () => {
    expect(read('{"action": "x"}', "content_filter").kind).toBe("refused");
    expect(read('{"action": "x', "length")).toEqual({
      kind: "nonsense",
      why: "the answer is not the JSON asked for (the output reached its token limit)",
    });
  });
});

describe("the size of an edit", () => {
  // Distances from the literature and by hand.
  it.each([
    [[..."kitten"], [..."sitting"], 3],
    [[..."intention"], [..."execution"], 5],
    [[..."saturday"], [..."sunday"], 3],
    [[], ["a", "b"], 2],
  ])("%j to %j takes %i edits", (a, b, edits) => expect(levenshtein(a, b)).toBe(edits));
  it.each([
    ["13 - 5 = 8", "13 - 4 = 9", 2 / 5],
    ["Advice: hit", "Advice: stand", 1 / 3],
    ["a b", "a b", 0],
    ["", "", 0],
    ["", "a", 1],
    ["x_1=2", "x_1 = 3", 1 / 3],
  ])("from %j to %j is %d of it", (before, after, share) => expect(editShare(before, after)).toBeCloseTo(share, 12));
});

describe("the leak guard on words and programs", () => {
  const words = {
    original: "Note: it is in Paris.",
    visible: "Where was the Eiffel designer born? Log",
    answer: "The Côte-d'Or, Dijon",
  };
  it.each([
    ["stated in other case and punctuation", "answer: THE CÔTE-D'OR DIJON", true],
    ["only a part of it", "Note: it is in Dijon.", false],
    ["as part of another word", "Note: the Côte-d'Or Dijonnais.", false],
  ])("%s: %s", (_, correction, leaks) => expect(leakOf(correction, words) !== undefined).toBe(leaks));
  it("lets words stand that the agent was shown", () => {
    expect(
      leakOf("Answer: Dijon", { ...words, answer: "Dijon", visible: "> library: born in Dijon." }),
    ).toBeUndefined();
    expect(leakOf("Answer: Dijon", { ...words, answer: "Dijon" })).toContain("states the final answer Dijon");
  });
  it.each([
    ["a plan that gives yes away", "The answer is yes.", "Hop 1: look up A", true],
    ["yes in the answer's own step", "Answer: yes", "Answer: no", false],
    ["yes in a sentence", "Note: yes, they are directors.", "Note: nothing.", false],
  ])("%s: %s", (_, correction, original, leaks) => {
    expect(leakOf(correction, { original, visible: "Are they?", answer: "yes" }) !== undefined).toBe(leaks);
  });
  it.each([
    ["72 dollars", "The total is 72.", true],
    ["\\frac{1}{2}", "It is \\frac{1}{2}.", true],
    ["\\frac{1}{2}", "It is 2.", false],
    ["1,200", "That makes 1200.", true],
  ])("answer %s, said as %j: %s", (answer, correction, leaks) => {
    expect(leakOf(correction, { original: "Plan", visible: "how much?", answer }) !== undefined).toBe(leaks);
  });
  const program = "def area(r):\n    return 3 * r  # three";
  it.each([
    ["a tester who writes the program", "```python\ndef area(r):\n  return 3*r\n```", "assert area(2) == 7", true],
    ["a tester's assertion", "assert area(2) == 6", "assert area(2) == 7", false],
    ["the coder's own step", "def area(r):\n    return 3 * r", "def area(r):\n    return 4 * r", false],
  ])("%s", (_, correction, original, leaks) => {
    expect(leakOf(correction, { original, visible: "", answer: "", program }) !== undefined).toBe(leaks);
  });
});

describe("the arms that control a correction", () => {
  const task = { id: "t", text: "p", source: "x", groupId: "t", referenceAnswer: "18" };
  const step: Step = {
    index: 0,
    agent: "solver",
    kind: "message",
    content: "So 16 - 5 = 11.",
    toolCalls: [],
    retrieved: [],
    callIds: [],
  };
  it("the placebo keeps the numbers, right or wrong; else it is asked for again, then given up", async () => {
    const model = answering('{"action": "So 16 - 3 = 13."}', '{"action": "Hence 16 - 5 = 11."}');
    expect(await proposePlacebo(task, step, { model, attempts: 3 })).toEqual({
      action: "Hence 16 - 5 = 11.",
      attempts: 2,
      rejected: ["it changes the numbers [11, 16, 5] to [13, 16, 3]"],
    });
    expect(model.asked[0]?.messages[1]?.content).not.toContain("18");
    const same = answering('{"action": "So 16 - 5 = 11."}', "nonsense");
    const given = await proposePlacebo(task, step, { model: same, attempts: 2 });
    expect(given).toEqual({
      attempts: 2,
      rejected: ["it is the same text", "the answer is not the JSON asked for"],
    });
  });
  it("the hint keeps the action and gives the answer away, where there is one", () => {
    expect(hintFor(task, "So 16 - 5 = 11.")).toBe("So 16 - 5 = 11.\n(Hint: the final answer is 18.)");
    expect(hintFor({ ...task, referenceAnswer: " " }, "x")).toBeUndefined();
  });
});
