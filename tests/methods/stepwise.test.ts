import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { MethodContext } from "../../src/methods/method.ts";
import { methodById } from "../../src/methods/registry.ts";
import { methodView } from "../../src/methods/view.ts";
import { scriptedModel } from "../../src/models/scripted.ts";
import { run } from "../evaluation/items.ts";
import { kindOf, plausibleModel, shownSteps } from "./plausible-model.ts";

const viewOf = (agents: readonly string[]) => methodView(run("r", agents, 0).trajectory, { withReference: false });
const view = viewOf(["Planner", "Coder", "Tester", "Coder", "Tester", "Coder (retry)"]);
const context: MethodContext = { seed: 1, epoch: 0 };
const usage = { promptTokens: 10, completionTokens: 2 };
const verdict = (word: string) => ({ content: `Verdict: ${word}\nReason: because ${word}`, usage });

/** What the method does with these answers, and the requests it makes. */
async function ask(id: string, answers: Parameters<typeof scriptedModel>[0], over: Partial<MethodContext> = {}) {
  const model = scriptedModel(answers);
  const attribution = await methodById(id)
    .configure()
    .attribute(view, { ...context, ...over, model });
  return { attribution, requests: model.requests.map(({ request }) => request) };
}

describe("step-by-step", () => {
  it("shows the log up to each step and nothing of later ones, and stops at the first yes", async () => {
    const { attribution, requests } = await ask("step-by-step", [
      verdict("no"),
      verdict("no"),
      verdict("yes"),
      verdict("yes"),
    ]);
    expect(attribution).toEqual({
      agent: "Tester",
      step: 2,
      parsePath: "labelled-lines",
      evidence: [{ step: 2, text: "because yes" }],
      calls: 3,
      usage: { promptTokens: 30, completionTokens: 6 },
      rawOutput:
        "[step 0]\nVerdict: no\nReason: because no\n\n[step 1]\nVerdict: no\nReason: because no\n\n[step 2]\nVerdict: yes\nReason: because yes\n",
    });
    expect(requests.map((request) => shownSteps(request).map(({ step }) => step))).toEqual([[0], [0, 1], [0, 1, 2]]);
    requests.forEach((request, i) => {
      const user = request.messages[1]!.content;
      expect(user).toContain(`Is step ${i} the decisive error?`);
      for (const step of view.steps) expect(user.includes(step.content)).toBe(step.index <= i);
      expect(user).not.toContain("{{");
    });
    // Agents that have not acted yet would be news of the future.
    expect(requests[0]!.messages[1]!.content).not.toContain("Tester");
  });

  it("names no step where every answer is no: that was read, so it is no parse failure", async () => {
    const { attribution } = await ask("step-by-step", Array(6).fill(verdict("no")));
    expect(attribution).toMatchObject({
      agent: null,
      step: null,
      parsePath: "none",
      noStepNamed: true,
      calls: 6,
      evidence: [],
    });
    expect(attribution).not.toHaveProperty("parseFailure");
  });

  it("takes what it cannot read as no, and says so", async () => {
    const { attribution } = await ask("step-by-step", [
      "Well.",
      { finishReason: "content_filter" },
      ...Array(4).fill("No."),
    ]);
    expect(attribution).toMatchObject({
      step: null,
      parseFailure: "no step was called the decisive error; 2 of 6 answers could not be read",
    });
    expect(attribution.evidence).toEqual([
      { step: 0, text: "unreadable, taken as no: no answer in the output" },
      { text: "step 1: the server's content filter ended the output (finish reason content_filter)" },
      { step: 1, text: "unreadable, taken as no: the server's content filter withheld the answer" },
    ]);
    expect(attribution.usage).toBeUndefined();
    expect(attribution).not.toHaveProperty("noStepNamed");
  });
});

describe("binary-search", () => {
  it("shows the half that is left, down to one step", async () => {
    const { attribution, requests } = await ask("binary-search", [
      "Half: later\nReason: late",
      "Half: earlier",
      "upper",
    ]);
    // 0–5, then 3–5, then 3–4, then 3.
    expect(requests.map((request) => shownSteps(request).map(({ step }) => step))).toEqual([
      [0, 1, 2, 3, 4, 5],
      [3, 4, 5],
      [3, 4],
    ]);
    expect(requests[1]!.messages[1]!.content).toContain("The earlier half is steps 3 to 4. The later half is step 5.");
    expect(attribution).toMatchObject({
      agent: "Coder",
      step: 3,
      parsePath: "prose",
      calls: 3,
      evidence: [
        { text: "steps 0 to 5: later. late" },
        { text: "steps 3 to 5: earlier" },
        { text: "steps 3 to 4: earlier" },
      ],
    });
    expect(attribution.parseFailure).toBeUndefined();
  });

  it("lets the seed settle an ambiguous answer: the same for the same seed, log and epoch", async () => {
    const answers = ["Half: earlier or later", "Half: earlier", "Half: earlier"];
    const first = await ask("binary-search", answers);
    expect((await ask("binary-search", answers)).attribution).toEqual(first.attribution);
    expect(first.attribution.evidence[0]!.text).toMatch(
      /^steps 0 to 5: ambiguous \(the answer is not one of: earlier, later\), settled by the seed: (earlier|later)$/,
    );
    expect(first.attribution.parseFailure).toBeUndefined();
    const steps = new Set<number | null>();
    for (let epoch = 0; epoch < 30; epoch++)
      steps.add((await ask("binary-search", answers, { epoch })).attribution.step);
    expect(steps).toEqual(new Set([0, 3]));
  });

  it("marks a result that the seed alone has chosen", async () => {
    const { attribution } = await ask("binary-search", Array(3).fill("Hm."));
    expect(attribution).toMatchObject({
      parsePath: "none",
      parseFailure: "every half was chosen by the seed: no answer in the output",
    });
  });

  it("finds any step in ⌈log₂ T⌉ calls at most, and in the planned ones", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 140 }), fc.nat(), async (count, pick) => {
        const target = pick % count;
        const log = viewOf(Array.from({ length: count }, (_, i) => `A${i}`));
        const model = plausibleModel({});
        const aimed = {
          ...model,
          complete: async (request: Parameters<typeof model.complete>[0]) => {
            const shown = shownSteps(request);
            const middle = Math.floor((shown[0]!.step + shown.at(-1)!.step) / 2);
            return { ...(await model.complete(request)), content: target <= middle ? "Half: earlier" : "Half: later" };
          },
        };
        const method = methodById("binary-search").configure();
        const { step, agent, calls } = await method.attribute(log, { ...context, model: aimed });
        expect({ step, agent }).toEqual({ step: target, agent: `A${target}` });
        const plan = method.plan(log).calls;
        expect(calls).toBeLessThanOrEqual(Math.ceil(Math.log2(count)));
        expect(calls).toBeGreaterThanOrEqual(plan.low);
        expect(plan.high).toBe(Math.ceil(Math.log2(count)));
      }),
      { numRuns: 60 },
    );
  });

  it("asks nothing about a single step", async () => {
    const model = scriptedModel([]);
    const attribution = await methodById("binary-search")
      .configure()
      .attribute(viewOf(["A"]), { ...context, model });
    expect(attribution).toEqual({ agent: "A", step: 0, parsePath: "computed", calls: 0, evidence: [] });
  });
});

describe("hybrid", () => {
  const coder = "Agent Name: coder\nReason: its loop";

  it("asks about the named agent's steps only, each with the whole log up to it", async () => {
    const { attribution, requests } = await ask("hybrid", [coder, verdict("no"), verdict("yes")]);
    expect(requests.map(kindOf)).toEqual(["agent", "verdict", "verdict"]);
    expect(requests.map((request) => shownSteps(request).length)).toEqual([6, 2, 4]);
    expect(requests[2]!.messages[1]!.content).toContain(
      "The agent held responsible is Coder; step 3 is its latest action.",
    );
    expect(attribution).toMatchObject({
      agent: "Coder",
      step: 3,
      parsePath: "labelled-lines",
      calls: 3,
      evidence: [{ text: "Coder: its loop" }, { step: 3, text: "because yes" }],
    });
  });

  it("keeps the agent where none of its steps is called decisive", async () => {
    const { attribution, requests } = await ask("hybrid", [coder, ...Array(3).fill("No.")]);
    // "Coder (retry)" is Coder.
    expect(requests.map((request) => shownSteps(request).length)).toEqual([6, 2, 4, 6]);
    expect(attribution).toMatchObject({
      agent: "Coder",
      step: null,
      parsePath: "labelled-lines",
      noStepNamed: true,
    });
  });

  it.each([
    ["Hm.", null, "prose names 0 agents, not one"],
    ["Agent Name: Nobody_Known", "Nobody_Known", "the named agent is none of the run's"],
  ])("stops after %j", async (answer, agent, parseFailure) => {
    expect((await ask("hybrid", [answer])).attribution).toMatchObject({ agent, step: null, parseFailure, calls: 1 });
  });
});
