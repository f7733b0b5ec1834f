import { describe, expect, it } from "vitest";
import type { ChatModel, ChatRequest } from "../../src/models/chat-model.ts";
import { editSize, proposeCorrection } from "../../synth/analyzer/analyzer.ts";
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
      "the answer is not the JSON asked for",
      "it states the final answer 18 before the run has reached it",
      "the answer is not the JSON asked for",
    ]);
    expect(model.asked[2]?.messages[1]?.content).toContain("refused: it states the final answer 18");
  });

  it("measures how much of a step was changed", () => {
    expect(editSize("Plan 1: 16 - 3", "Plan 1: 16 - 3")).toBe(0);
    expect(editSize("Plan 1: 16 - 3", "Plan 1: 16 - 4")).toBe(2);
    expect(editSize("abc", "")).toBe(3);
  });
});
