import { describe, expect, it } from "vitest";
import type { MethodContext } from "../../src/methods/method.ts";
import { methodById } from "../../src/methods/registry.ts";
import { methodView } from "../../src/methods/view.ts";
import { type ScriptRule, scriptedModel } from "../../src/models/scripted.ts";
import { run } from "../evaluation/items.ts";
import { kindOf, shownSteps } from "./plausible-model.ts";

const view = methodView(run("r", ["Planner", "Coder", "Tester", "Coder"], 0).trajectory, { withReference: false });
const context: MethodContext = { seed: 1, epoch: 0 };

async function ask(id: string, answers: Parameters<typeof scriptedModel>[0], options: object = {}) {
  const model = scriptedModel(answers);
  const attribution = await methodById(id)
    .configure(options)
    .attribute(view, { ...context, model });
  return { attribution, requests: model.requests.map(({ request }) => request) };
}

describe("a2p", () => {
  it("asks once for three moves and an answer, and keeps the moves as evidence", async () => {
    const content = JSON.stringify({
      abduction: "It believed the index starts at 1.",
      action: "Start at 0 in step 1.",
      prediction: "Tester passes. Coder reports.",
      agent: "coder",
      step: 1,
    });
    const { attribution, requests } = await ask("a2p", [content]);
    expect(attribution).toEqual({
      agent: "Coder",
      step: 1,
      parsePath: "json",
      calls: 1,
      rawOutput: content,
      evidence: [
        { text: "abduction: It believed the index starts at 1." },
        { text: "action: Start at 0 in step 1.", step: 1 },
        { text: "prediction: Tester passes. Coder reports." },
      ],
    });
    expect(requests[0]!.responseFormat).toMatchObject({
      type: "json_schema",
      schema: { required: ["abduction", "action", "prediction", "agent", "step"], additionalProperties: false },
    });
    expect(shownSteps(requests[0]!)).toHaveLength(4);
    expect(requests[0]!.messages[0]!.content).toMatch(/Abduction.*Action.*Prediction.*three to five turns/su);
  });

  it("reads the moves from text, whatever steps and agents they speak of", async () => {
    const content =
      "<think>step 3?</think>**Abduction:** A wrong index.\n\n**Action:**\n- Step: 1\n- Agent: Coder\nStart at 0.\n\n**Prediction:** Step 2: Tester passes.\n<answer>Coder | 1</answer>";
    const { attribution, requests } = await ask("a2p", [content], { structured: "never" });
    expect(requests[0]!.responseFormat).toBeUndefined();
    expect(attribution).toMatchObject({
      agent: "Coder",
      step: 1,
      parsePath: "answer-tag",
      evidence: [
        { text: "abduction: A wrong index." },
        { text: "action: - Step: 1\n- Agent: Coder\nStart at 0.", step: 1 },
        { text: "prediction: Step 2: Tester passes." },
      ],
    });
  });
});

const proposal = (agent: string, step: number, mark = "") =>
  JSON.stringify({ error: `wrong${mark}`, first: `nothing before${mark}`, effect: `decides${mark}`, agent, step });
const critique = (confidence: number, reason = "I looked.") => JSON.stringify({ reason, confidence });

describe("raffles", () => {
  it("asks the judge, then an examiner per point, and stops above the threshold", async () => {
    const { attribution, requests } = await ask("raffles", [
      proposal("Coder", 1),
      critique(90, "a real error"),
      critique(80, "nothing earlier"),
      critique(70, "it decides"),
    ]);
    expect(requests.map(kindOf)).toEqual(["proposal", "confidence", "confidence", "confidence"]);
    for (const request of requests) expect(shownSteps(request)).toHaveLength(4);
    const questions = requests.map((request) => request.messages[1]!.content);
    expect(questions[0]).not.toContain("Proposals examined before");
    expect(questions[1]).toContain("Is what Coder did at step 1 an error?");
    expect(questions[1]).toContain("The judge's reason on your point: wrong\n");
    expect(questions[2]).toContain("Is step 1 the first error");
    expect(questions[2]).toContain("point: nothing before\n");
    expect(questions[3]).toContain("Would acting correctly at step 1 have changed the outcome?");
    expect(questions[3]).toContain("point: decides\n");
    // (1 + 0.9 + 0.8 + 0.7) / 4
    expect(attribution).toMatchObject({ agent: "Coder", step: 1, parsePath: "json", calls: 4 });
    expect(attribution.confidence).toBeCloseTo(0.85, 12);
    expect(attribution.evidence).toEqual([
      { step: 1, text: "round 1: proposed step 1, Coder" },
      { step: 1, text: "round 1: rule check: Coder acts at step 1" },
      { step: 1, text: "round 1: is it an error: 90 of 100. a real error" },
      { step: 1, text: "round 1: is it the first: 80 of 100. nothing earlier" },
      { step: 1, text: "round 1: would fixing it change the outcome: 70 of 100. it decides" },
    ]);
  });

  it("hands earlier proposals and critiques to the next round and answers with the best-scored", async () => {
    const answers = [
      proposal("Coder", 3, " A"),
      critique(60, "critique one"),
      critique(20, "critique two"),
      critique(40, "critique three"),
      proposal("Planner", 0, " B"),
      critique(70),
      critique(70),
      critique(70),
    ];
    const { attribution, requests } = await ask("raffles", answers);
    expect(requests.map(kindOf)).toEqual(Array(2).fill(["proposal", "confidence", "confidence", "confidence"]).flat());
    const second = requests[4]!.messages[1]!.content;
    for (const part of [
      "Round 1\nProposal: step 3, Coder. Confidence over all points: 55 of 100.",
      "- rule check: Coder acts at step 3",
      "- is it an error, the judge: wrong A\n- is it an error, the examiner: 60 of 100. critique one",
      "- is it the first, the judge: nothing before A\n- is it the first, the examiner: 20 of 100. critique two",
      "the examiner: 40 of 100. critique three",
    ]) {
      expect(second).toContain(part);
    }
    // Examiners judge the proposal in hand, not its forerunners.
    expect(requests[5]!.messages[1]!.content).not.toContain("critique one");
    expect(attribution).toMatchObject({ agent: "Planner", step: 0, calls: 8 });
    expect(attribution.ranking!.map(({ agent, step }) => [agent, step])).toEqual([
      ["Planner", 0],
      ["Coder", 3],
    ]);
    expect(attribution.ranking!.map(({ score }) => Math.round(score * 1000))).toEqual([775, 550]);

    const weaker = await ask("raffles", [...answers.slice(0, 5), critique(10), critique(10), critique(10)]);
    expect(weaker.attribution).toMatchObject({ agent: "Coder", step: 3 });
    const equal = await ask("raffles", [...answers.slice(0, 5), critique(60), critique(20), critique(40)]);
    expect(equal.attribution).toMatchObject({ agent: "Planner", step: 0 });
  });

  it("goes on for as many rounds as told", async () => {
    const low: ScriptRule[] = [
      { when: (request) => kindOf(request) === "proposal", answer: proposal("Coder", 1) },
      { answer: critique(0) },
    ];
    expect((await ask("raffles", low, { rounds: 5 })).attribution.calls).toBe(20);
    expect((await ask("raffles", low, { rounds: 5, threshold: 0.25 })).attribution.calls).toBe(4);
    expect((await ask("raffles", low, { rounds: 1 })).attribution.calls).toBe(4);
  });

  it("checks the proposal against the log by rule", async () => {
    const { attribution, requests } = await ask("raffles", [
      proposal("Coder", 9),
      proposal("Coder", 2),
      critique(100),
      critique(100),
      critique(100),
    ]);
    // A step that does not exist is not examined, but remembered.
    expect(requests.map(kindOf)).toEqual(["proposal", "proposal", "confidence", "confidence", "confidence"]);
    expect(requests[1]!.messages[1]!.content).toContain("rule check: the log has no step 9, only steps 0 to 3");
    expect(attribution).toMatchObject({ agent: "Coder", step: 2, confidence: 0.75 });
    expect(attribution.evidence).toContainEqual({
      step: 2,
      text: "round 2: rule check: Tester acts at step 2, not Coder",
    });
  });

  it("counts a confidence it cannot read as no support, and says so", async () => {
    const { attribution } = await ask(
      "raffles",
      [proposal("Coder", 1), critique(100), "Confidence: high", critique(100)],
      {
        rounds: 1,
      },
    );
    expect(attribution.confidence).toBe(0.75);
    expect(attribution.evidence).toContainEqual({
      step: 1,
      text: "round 1: is it the first: no confidence. Unreadable: the confidence is not a number.",
    });
  });

  it("goes on after a proposal it cannot read, and gives no answer where there is none", async () => {
    const { attribution, requests } = await ask("raffles", ["Hm.", "I cannot tell."]);
    expect(requests[1]!.messages[1]!.content).toContain("No proposal could be read (no answer in the output).");
    expect(attribution).toMatchObject({
      agent: null,
      step: null,
      parsePath: "none",
      parseFailure: "the model declined to answer",
      calls: 2,
    });
  });

  it("reads text as well as JSON", async () => {
    const lines = "Error: wrong\nFirst: nothing before\nEffect: decides\nAgent Name: Coder\nStep Number: 1";
    const examiner = "Reason: I looked.\nConfidence: 90%";
    const { attribution, requests } = await ask("raffles", [lines, examiner, examiner, examiner], {
      structured: "never",
    });
    expect(requests.every((request) => request.responseFormat === undefined)).toBe(true);
    expect(requests[3]!.messages[1]!.content).toContain("The judge's reason on your point: decides\n");
    expect(attribution).toMatchObject({ agent: "Coder", step: 1, parsePath: "labelled-lines" });
    expect(attribution.confidence).toBeCloseTo(0.925, 12);
  });
});
