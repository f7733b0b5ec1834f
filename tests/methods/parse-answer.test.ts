import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseAnswer } from "../../src/methods/shared/parse-answer.ts";

const AGENTS = ["Orchestrator", "WebSurfer", "Verification_Expert", "Blu-Ray_Expert", "Expert"];

const readable: [string, string, string, number, string][] = [
  [
    "labelled lines",
    "Agent Name: WebSurfer\nStep Number: 12\nReason: It opened ads.",
    "WebSurfer",
    12,
    "labelled-lines",
  ],
  ["labels in the other order", "Step Number: 3\nAgent Name: WebSurfer", "WebSurfer", 3, "labelled-lines"],
  ["short labels", "agent: websurfer\nstep: 3", "WebSurfer", 3, "labelled-lines"],
  ["both labels on one line", "Agent: WebSurfer, Step: 3", "WebSurfer", 3, "labelled-lines"],
  ["a list", "- Agent Name: WebSurfer\n- Step Number: 3", "WebSurfer", 3, "labelled-lines"],
  ["a numbered list", "1. Agent Name: WebSurfer\n2. Step Number: 3", "WebSurfer", 3, "labelled-lines"],
  ["bold labels", "**Agent Name:** WebSurfer\n**Step Number:** 3", "WebSurfer", 3, "markdown"],
  [
    "bold labels, colon outside",
    "**Agent Name**: `Blu-Ray_Expert`\n**Step Number**: 0",
    "Blu-Ray_Expert",
    0,
    "markdown",
  ],
  ["bold values", "Agent Name: **Verification_Expert**\nStep Number: **7**", "Verification_Expert", 7, "markdown"],
  ["values on the next line", "**Agent Name:**\nWebSurfer\n\n**Step Number:**\n3", "WebSurfer", 3, "markdown"],
  ["step with its word", "Agent Name: WebSurfer\nStep Number: Step 3", "WebSurfer", 3, "labelled-lines"],
  ["step with a full stop", "Agent Name: WebSurfer.\nStep Number: 3.", "WebSurfer", 3, "labelled-lines"],
  ["step with a remark", "Agent Name: WebSurfer\nStep Number: 3 (the search)", "WebSurfer", 3, "labelled-lines"],
  ["an agent with a remark", "Agent Name: Orchestrator (thought)\nStep Number: 3", "Orchestrator", 3, "labelled-lines"],
  ["an agent the run does not have", "Agent Name: Planner\nStep Number: 3", "Planner", 3, "labelled-lines"],
  ["JSON", '{"agent": "WebSurfer", "step": 3}', "WebSurfer", 3, "json"],
  ["JSON with a string step", '{"agent_name": "WebSurfer", "step_number": "3"}', "WebSurfer", 3, "json"],
  [
    "fenced JSON",
    'Here:\n```json\n{"reason": "a } b", "agent": "WebSurfer",\n "step": 3}\n```',
    "WebSurfer",
    3,
    "json",
  ],
  ["nested JSON", '{"result": {"Agent Name": "WebSurfer", "Step Number": 3}}', "WebSurfer", 3, "json"],
  ["JSON in a list", '[{"mistake_agent": "WebSurfer", "mistake_step": "3"}]', "WebSurfer", 3, "json"],
  ["a brace before the JSON", 'The set {a, b} and {"agent": "WebSurfer", "step": 3}', "WebSurfer", 3, "json"],
  ["a Python literal", "{'agent': 'WebSurfer', 'step': 3}", "WebSurfer", 3, "labelled-lines"],
  ["answer tag", "<answer>WebSurfer | 3</answer>", "WebSurfer", 3, "answer-tag"],
  ["answer tag without spaces", "so <answer>WebSurfer|3</answer>.", "WebSurfer", 3, "answer-tag"],
  [
    "reasoning before",
    "<think>Agent Name: Orchestrator\nStep Number: 1</think>Agent Name: WebSurfer\nStep Number: 3",
    "WebSurfer",
    3,
    "labelled-lines",
  ],
  [
    "reasoning whose opening tag was in the prompt",
    "hm, step 1?</think><answer>WebSurfer | 3</answer>",
    "WebSurfer",
    3,
    "answer-tag",
  ],
  ["prose", "The mistake was made by WebSurfer at step 3, when it opened an ad.", "WebSurfer", 3, "prose"],
  [
    "prose that repeats itself",
    "WebSurfer erred in Step 3. At step 3 WebSurfer opened an ad.",
    "WebSurfer",
    3,
    "prose",
  ],
  ["prose with a name inside a name", "Verification_Expert is to blame (step 3).", "Verification_Expert", 3, "prose"],
];

describe("parseAnswer reads", () => {
  it.each(readable)("%s", (_name, output, agent, step, parsePath) => {
    const parsed = parseAnswer(output, AGENTS);
    expect(parsed).toMatchObject({ agent, step, parsePath });
    expect(parsed.parseFailure).toBeUndefined();
    expect(parsed.answers).toBeUndefined();
  });

  it.each([
    [
      "labelled twice",
      "Agent Name: Orchestrator\nStep Number: 1\n\nOn reflection:\nAgent Name: WebSurfer\nStep Number: 3",
    ],
    ["tag after labels", "Agent Name: Orchestrator\nStep Number: 1\n<answer>WebSurfer | 3</answer>"],
    ["two tags", "<answer>Orchestrator | 1</answer> no: <answer>WebSurfer | 3</answer>"],
    ["two objects", '{"agent":"Orchestrator","step":1}\n{"agent":"WebSurfer","step":3}'],
  ])("the last of several answers, and says so: %s", (_name, output) => {
    expect(parseAnswer(output, AGENTS)).toMatchObject({ agent: "WebSurfer", step: 3, answers: 2 });
  });

  it("keeps the reason", () => {
    expect(parseAnswer("Agent Name: WebSurfer\nStep Number: 3\nReason: It opened an ad.", AGENTS).reason).toBe(
      "It opened an ad.",
    );
  });
});

describe("parseAnswer reports", () => {
  it.each([
    ["nothing", "", "empty output"],
    ["reasoning only", "<think>WebSurfer at step 3", "the output ends inside its reasoning"],
    ["reasoning without an answer", "<think>WebSurfer at step 3</think>  ", "empty output"],
    ["a refusal", "I'm sorry, but I cannot determine which agent failed.", "the model declined to answer"],
    ["small talk", "Great question!", "no answer in the output"],
    ["two agents in prose", "Orchestrator or WebSurfer at step 3", "prose names 2 agents and 1 steps, not one of each"],
    ["two steps in prose", "WebSurfer at step 3 or step 4", "prose names 1 agents and 2 steps, not one of each"],
    [
      "no agent, no step",
      "Agent Name: None\nStep Number: N/A",
      "the answer names no agent; the step is not one number",
    ],
  ])("%s", (_name, output, parseFailure) => {
    expect(parseAnswer(output, AGENTS)).toEqual({ agent: null, step: null, parsePath: "none", parseFailure });
  });

  it.each(["3-4", "3 - 4", "3, 4", "3 and 4", "-1", "3.5", "three", "٣", "1234567890123456", "between 3 and 5", ""])(
    "a step that is not one whole number: %s",
    (step) => {
      const parsed = parseAnswer(`Agent Name: WebSurfer\nStep Number: ${step}\n`, AGENTS);
      expect(parsed).toMatchObject({ agent: "WebSurfer", step: null });
      expect(parsed.parseFailure).toBe("the step is not one number");
    },
  );

  it("an answer with the agent only", () => {
    expect(parseAnswer("Agent Name: WebSurfer", AGENTS)).toMatchObject({
      agent: "WebSurfer",
      step: null,
      parseFailure: "the answer names no step",
    });
  });

  it("either an answer or a failure, for any output", () => {
    const soup = fc
      .array(
        fc.oneof(
          fc.constantFrom(
            ...AGENTS,
            "step 3",
            "Agent Name:",
            "Step:",
            "{",
            "}",
            '"',
            "<answer>",
            "|",
            "</answer>",
            "\n",
            "**",
          ),
          fc.string(),
        ),
      )
      .map((parts) => parts.join(" "));
    fc.assert(
      fc.property(soup, (output) => {
        const { agent, step, parseFailure } = parseAnswer(output, AGENTS);
        expect(parseFailure === undefined).toBe(agent !== null && step !== null);
        if (step !== null) expect(Number.isSafeInteger(step) && step >= 0).toBe(true);
      }),
    );
  });

  it("nothing in a long hostile output, in linear time", () => {
    for (const piece of ["{", "<answer>", "Agent Name: ", "step ", '{"a":']) {
      expect(parseAnswer(piece.repeat(20_000), AGENTS).step).toBeNull();
    }
  });
});
