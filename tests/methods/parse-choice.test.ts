import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseAgent } from "../../src/methods/shared/parse-answer.ts";
import { parseHalf, parseYesNo } from "../../src/methods/shared/parse-choice.ts";
import { parseConfidence } from "../../src/methods/shared/parse-confidence.ts";
import { readFields } from "../../src/methods/shared/read-fields.ts";

const AGENTS = ["Orchestrator", "WebSurfer", "Verification_Expert", "Expert"];
const yesNo = (output: string) => parseYesNo(output, ["decisive", "error"]);

describe("parseYesNo reads", () => {
  it.each([
    ["a bare word", "yes", "yes", "prose"],
    ["a sentence", "No. The plan was sound.", "no", "prose"],
    ["no before a noun", "No error was made in this step.", "no", "prose"],
    ["a list marker", "1. Yes\n2. It opened an ad.", "yes", "prose"],
    ["bold", "**Yes** - it opened an ad.", "yes", "markdown"],
    ["capitals", "YES!", "yes", "prose"],
    ["a closing word", "The agent searched the wrong year.\n\nYes.", "yes", "prose"],
    ["a label", "Verdict: yes\nReason: It opened an ad.", "yes", "labelled-lines"],
    ["a label of the method", "Decisive: No", "no", "labelled-lines"],
    ["the other order", "Reason: There is no sign of it, yes?\nVerdict: no", "no", "labelled-lines"],
    ["a bold label", "**Verdict:** Yes", "yes", "markdown"],
    ["a bold label, colon outside", "**Verdict**: **no**", "no", "markdown"],
    ["a heading", "## Verdict\nno\n## Reason\nsound", "no", "markdown"],
    ["a label and a remark", "Verdict: yes (it opened an ad)", "yes", "labelled-lines"],
    ["JSON", '{"reason": "no idea", "verdict": "yes"}', "yes", "json"],
    ["a JSON boolean", '{"decisive": false}', "no", "json"],
    ["fenced, nested JSON", '```json\n{"result": {"Verdict": "No"}}\n```', "no", "json"],
    ["an answer tag", "<answer>yes</answer>", "yes", "answer-tag"],
    ["reasoning before", "<think>Verdict: no</think>Verdict: yes", "yes", "labelled-lines"],
    ["reasoning without its opening tag", "hm, no\n</think>\nyes", "yes", "prose"],
  ])("%s", (_name, output, choice, parsePath) => {
    const parsed = yesNo(output);
    expect(parsed).toMatchObject({ choice, parsePath });
    expect(parsed.parseFailure).toBeUndefined();
    expect(parsed.answers).toBeUndefined();
  });

  it("the last of several, and says so; the reason with it", () => {
    expect(yesNo("Verdict: no\nOn reflection:\nVerdict: yes\nReason: It opened an ad.")).toEqual({
      choice: "yes",
      parsePath: "labelled-lines",
      answers: 2,
      reason: "It opened an ad.",
    });
  });
});

describe("parseYesNo reports", () => {
  it.each([
    ["nothing", " ", "empty output"],
    ["unfinished reasoning", "<think>yes", "the output ends inside its reasoning"],
    ["a refusal", "I'm sorry, but I can't help with that.", "the model declined to answer"],
    ["small talk", "Great question!", "no answer in the output"],
    ["both at the ends", "Yes, it may be.\nBut then:\nNo.", "the output says several of: yes, no"],
    ["both under the label", "Verdict: it may be yes or no", "the answer is not one of: yes, no"],
    [
      "the question copied",
      "Verdict: (yes or no)\nReason: (one or two sentences)",
      "the answer is not one of: yes, no",
    ],
    ["the question copied without its label", "Yes/no", "no answer in the output"],
    ["neither under the label", "Verdict: unclear", "the answer is not one of: yes, no"],
    ["words that only begin like it", "Nothing. Yesterday.", "no answer in the output"],
    ["yes in the middle of prose", "One could say yes to that.", "no answer in the output"],
  ])("%s", (_name, output, parseFailure) => {
    expect(yesNo(output)).toMatchObject({ choice: null, parsePath: "none", parseFailure });
  });

  it("either a choice or a failure, for any output", () => {
    const soup = fc
      .array(fc.oneof(fc.constantFrom("yes", "no", "Verdict:", "\n", "**", "{", "}", '"', "# "), fc.string()))
      .map((parts) => parts.join(" "));
    fc.assert(
      fc.property(soup, (output) => {
        for (const { choice, parseFailure } of [yesNo(output), parseHalf(output)]) {
          expect(choice === null).toBe(parseFailure !== undefined);
        }
        const { confidence, parseFailure } = parseConfidence(output);
        expect(confidence === null).toBe(parseFailure !== undefined);
        if (confidence !== null) expect(confidence >= 0 && confidence <= 1).toBe(true);
        const { agent, parseFailure: noAgent } = parseAgent(output, AGENTS);
        expect(agent === null).toBe(noAgent !== undefined);
      }),
    );
  });

  it("nothing in a long hostile output, without hanging", () => {
    for (const piece of ["{", "<answer>", "Verdict: ", "**", "a: ", "- ", "\n# ", " "]) {
      expect(yesNo(piece.repeat(20_000)).choice).toBeNull();
      expect(parseConfidence(piece.repeat(20_000)).confidence).toBeNull();
    }
  });
});

describe("parseHalf", () => {
  it.each([
    ["Half: earlier", "earlier", "labelled-lines"],
    ["Half: the later one", "later", "labelled-lines"],
    ["Half: upper half", "earlier", "labelled-lines"],
    ["**Half:** Lower", "later", "markdown"],
    ['{"half": "later"}', "later", "json"],
    ["upper", "earlier", "prose"],
    ["The lower half.", "later", "prose"],
    ["I think the mistake lies in the upper half of this log.", "earlier", "prose"],
    ["The first error is in the second half.", "later", "prose"],
    ["Earlier. The later half only shows it.", "earlier", "prose"],
  ])("reads %s", (output, choice, parsePath) => {
    expect(parseHalf(output)).toMatchObject({ choice, parsePath });
  });

  it.each([
    "It is somewhere between the upper half and the lower half.",
    "Half: earlier or later",
    "Half: both",
    "",
    "I cannot tell.",
  ])("finds none in %j", (output) => {
    expect(parseHalf(output)).toMatchObject({ choice: null, parsePath: "none" });
  });
});

describe("parseConfidence", () => {
  it.each([
    ["Confidence: 85", 0.85, "labelled-lines"],
    ["Confidence: 85%", 0.85, "labelled-lines"],
    ["Confidence: 85/100", 0.85, "labelled-lines"],
    ["Confidence: 8/10", 0.8, "labelled-lines"],
    ["Confidence: 85 out of 100.", 0.85, "labelled-lines"],
    ["Confidence: 0.85", 0.85, "labelled-lines"],
    ["Confidence: 1.0", 1, "labelled-lines"],
    ["Confidence: 0", 0, "labelled-lines"],
    ["Confidence: 100", 1, "labelled-lines"],
    ["Confidence: 1%", 0.01, "labelled-lines"],
    ["**Confidence Score:** 40", 0.4, "markdown"],
    ['{"reason": "x", "confidence": 72}', 0.72, "json"],
    ["My confidence is 60%.", 0.6, "prose"],
    ["90", 0.9, "prose"],
  ])("reads %s", (output, confidence, parsePath) => {
    const parsed = parseConfidence(output);
    expect(parsed).toMatchObject({ parsePath });
    expect(parsed.confidence).toBeCloseTo(confidence, 12);
  });

  it.each([
    ["Confidence: high", "the confidence is not a number"],
    ["Confidence: 0-100", "the confidence is not a number"],
    ["Confidence: 1", "a confidence of 1 may mean 1% or certainty"],
    ["Confidence: 130", "the confidence is outside its scale"],
    ["Confidence: -5", "the confidence is outside its scale"],
    ["Confidence: 3/0", "the confidence is outside its scale"],
    ["It happened in 1999 at step 4.", "no confidence in the output"],
    ["I cannot say.", "the model declined to answer"],
    ["", "empty output"],
  ])("does not read %j", (output, parseFailure) => {
    expect(parseConfidence(output)).toMatchObject({ confidence: null, parsePath: "none", parseFailure });
  });
});

describe("parseAgent", () => {
  it.each([
    ["Agent Name: websurfer\nReason: ads", "WebSurfer", "labelled-lines"],
    ["**Agent:** `Verification_Expert`", "Verification_Expert", "markdown"],
    ['{"reason": "Expert was right", "agent": "WebSurfer"}', "WebSurfer", "json"],
    ["Agent Name: WebSurfer, because Expert was right", "WebSurfer, because Expert was right", "labelled-lines"],
    ["Agent Name: WebSurfer because it opened ads", "WebSurfer", "labelled-lines"],
    ["Agent Name: Orchestrator (thought)", "Orchestrator", "labelled-lines"],
    ["<answer>WebSurfer</answer>", "WebSurfer", "answer-tag"],
    ["WebSurfer", "WebSurfer", "prose"],
    ["It was the Verification_Expert.", "Verification_Expert", "prose"],
    ["Agent Name: Planner", "Planner", "labelled-lines"],
  ])("reads %s", (output, agent, parsePath) => {
    expect(parseAgent(output, AGENTS)).toMatchObject({ agent, parsePath });
  });

  it.each([
    ["Agent Name: none", "the answer names no agent"],
    ["WebSurfer or Orchestrator", "prose names 2 agents, not one"],
    ["I cannot tell.", "the model declined to answer"],
    ["", "empty output"],
  ])("does not read %j", (output, parseFailure) => {
    expect(parseAgent(output, AGENTS)).toMatchObject({ agent: null, parsePath: "none", parseFailure });
  });
});

describe("readFields", () => {
  const keys = { cause: ["cause", "hiddencauses"], fix: ["fix"] };

  it("reads values of several lines up to the next label", () => {
    const text = "Intro\n\n**Hidden causes:**\n- one\n- two\n\nFix: change step 3,\nas said.\n";
    expect(readFields(text, keys)).toMatchObject({
      path: "markdown",
      last: { cause: "- one\n- two", fix: "change step 3,\nas said." },
    });
  });

  it("reads lists in JSON, and JSON before lines", () => {
    expect(readFields('Fix: no\n{"hidden_causes": ["a", "b"], "fix": "c"}', keys)).toMatchObject({
      path: "json",
      last: { cause: "a\nb", fix: "c" },
    });
  });

  it("finds nothing where nothing is", () => {
    expect(readFields("The cause is the fix.", keys)).toBeUndefined();
  });
});
