import { describe, expect, it } from "vitest";
import type { MethodContext } from "../../src/methods/method.ts";
import { METHODS, methodById } from "../../src/methods/registry.ts";
import { tracerMessages } from "../../src/methods/tracer/tracer.ts";
import { methodView } from "../../src/methods/view.ts";
import { run } from "../evaluation/items.ts";
import { captureModel } from "./capture-model.ts";

const { trajectory } = run("r", ["Planner", "Coder", "Tester", "Coder", "Tester", "Coder (retry)"], 1);
const view = methodView(trajectory, { withReference: false });
const context: MethodContext = { seed: 1, epoch: 0 };
const ask = (id: string, options: object = {}, over: Partial<MethodContext> = {}) =>
  methodById(id)
    .configure(options)
    .attribute(view, { ...context, ...over });

describe("floors", () => {
  it.each([
    ["floor-constant-step", { step: 2 }, "Tester", 2],
    ["floor-constant-step", { step: 99 }, null, 99],
    ["floor-constant-agent", { agent: "coder" }, "coder", 1],
    ["floor-constant-agent", { agent: "Nobody" }, "Nobody", null],
    ["floor-most-talkative", {}, "Coder", 1],
    ["floor-most-talkative", { exclude: ["Coder"] }, "Tester", 2],
    ["floor-last-step", {}, "Coder (retry)", 5],
  ])("%s with %o", async (id, options, agent, step) => {
    expect(await ask(id, options)).toMatchObject({ agent, step, calls: 0, parsePath: "computed" });
  });

  it("random: the same for the same seed, log and epoch, and over the whole range otherwise", async () => {
    expect(await ask("floor-random")).toEqual(await ask("floor-random"));
    const steps = new Set<number | null>();
    const agents = new Set<string | null>();
    for (let epoch = 0; epoch < 200; epoch++) {
      const { agent, step } = await ask("floor-random", {}, { epoch });
      steps.add(step);
      agents.add(agent);
    }
    expect(steps).toEqual(new Set([0, 1, 2, 3, 4, 5]));
    expect(agents).toEqual(new Set(["Planner", "Coder", "Tester"]));
  });
});

describe("all-at-once", () => {
  it("asks once, with the whole log, and reads the answer", async () => {
    const content = "Agent Name: coder\nStep Number: 3\nReason: It wrote a loop without an end.";
    const model = captureModel(() => ({ content, usage: { promptTokens: 10, completionTokens: 5 } }));
    const signal = new AbortController().signal;
    const attribution = await ask("all-at-once", { temperature: 0.5 }, { model, epoch: 3, signal });
    expect(attribution).toEqual({
      agent: "Coder",
      step: 3,
      parsePath: "labelled-lines",
      evidence: [{ step: 3, text: "It wrote a loop without an end." }],
      calls: 1,
      rawOutput: content,
      usage: { promptTokens: 10, completionTokens: 5 },
    });
    expect(model.requests).toHaveLength(1);
    const { request, options } = model.requests[0]!;
    expect(request).toMatchObject({ temperature: 0.5, maxTokens: 2048 });
    expect(options).toMatchObject({ epoch: 3, signal });
    const user = request.messages[1]!.content;
    for (const step of trajectory.steps) {
      expect(user).toContain(`Step ${step.index} · Agent: ${step.agent}\n${step.content}\n`);
    }
    expect(user).toContain("task r");
    expect(user).toContain("The agents: Planner, Coder, Tester\n");
    expect(user).not.toContain("correct answer");
    expect(user).not.toContain("{{");
  });

  it("takes text in a log that looks like a slot or a replacement pattern as text", async () => {
    const model = captureModel(() => ({ content: "" }));
    const steps = trajectory.steps.map((step) => ({ ...step, content: "{{task}} $& $1 {{nothing}}" }));
    const hostile = methodView({ ...trajectory, steps }, { withReference: false });
    await methodById("all-at-once")
      .configure()
      .attribute(hostile, { ...context, model });
    expect(model.requests[0]!.request.messages[1]!.content).toContain("Coder\n{{task}} $& $1 {{nothing}}\n");
  });

  it("asks for JSON held to a schema where told to", async () => {
    const content = '{"reason": "It loops.", "agent": "coder", "step": 3}';
    const model = captureModel(() => ({ content }));
    expect(await ask("all-at-once", { structured: "auto" }, { model })).toMatchObject({
      agent: "Coder",
      step: 3,
      parsePath: "json",
      evidence: [{ step: 3, text: "It loops." }],
    });
    const { request } = model.requests[0]!;
    expect(request.responseFormat).toEqual({
      type: "json_schema",
      name: "attribution",
      schema: {
        type: "object",
        properties: { reason: { type: "string" }, agent: { type: "string" }, step: { type: "integer" } },
        required: ["reason", "agent", "step"],
        additionalProperties: false,
      },
    });
    expect(request.messages[1]!.content).not.toContain("three lines");
  });

  it("records what it cannot read", async () => {
    const model = captureModel(() => ({ content: "I'm sorry, I cannot tell." }));
    expect(await ask("all-at-once", {}, { model })).toMatchObject({
      agent: null,
      step: null,
      parsePath: "none",
      parseFailure: "the model declined to answer",
      rawOutput: "I'm sorry, I cannot tell.",
    });
  });
});

describe("tracer", () => {
  it("reads the format of the reward and nothing else", async () => {
    const good = captureModel(() => ({ content: "<think>why</think><answer>Coder | 3</answer>" }));
    expect(await ask("tracer", {}, { model: good })).toMatchObject({
      agent: "Coder",
      step: 3,
      parsePath: "format-gate",
      evidence: [{ step: 3, text: "why" }],
    });
    const loose = captureModel(() => ({ content: "Agent Name: Coder\nStep Number: 3" }));
    expect(await ask("tracer", {}, { model: loose })).toMatchObject({ agent: null, step: null, parsePath: "none" });
  });

  it("joins reasoning that the server took apart", async () => {
    const model = captureModel(() => ({ reasoning: "\nwhy\n", content: "\n\n<answer>Coder | 3</answer>" }));
    expect(await ask("tracer", {}, { model })).toMatchObject({
      agent: "Coder",
      step: 3,
      rawOutput: "<think>\nwhy\n</think>\n\n<answer>Coder | 3</answer>",
    });
  });

  it("cuts long logs by step and reports it", async () => {
    const steps = trajectory.steps.map((step) => ({ ...step, content: "x".repeat(1000) }));
    const long = methodView({ ...trajectory, steps }, { withReference: false });
    const model = captureModel(() => ({ content: "" }));
    const attribution = await methodById("tracer")
      .configure({ logBudget: 1200 })
      .attribute(long, { ...context, model });
    expect(attribution.cut).toMatchObject({ stepsCut: 6, overBudget: false });
    const { messages } = tracerMessages(long, 1200);
    expect(model.requests[0]!.request.messages).toEqual(messages);
    for (const step of steps) expect(messages[1]!.content).toContain(`Step ${step.index} · Agent: ${step.agent}\n`);
  });

  it("asks a policy where there is one", async () => {
    const policy = {
      id: "p",
      predict: async (seen: { id: string }, options: { epoch: number }) =>
        `<think>${seen.id}/${options.epoch}</think><answer>Tester | 2</answer>`,
    };
    expect(await ask("tracer", {}, { policy, epoch: 4 })).toMatchObject({
      agent: "Tester",
      step: 2,
      evidence: [{ text: "r/4" }],
    });
  });
});

describe("registry", () => {
  it("has distinct ids and names the known ones when asked for another", () => {
    expect(new Set(METHODS.map((method) => method.id)).size).toBe(METHODS.length);
    expect(() => methodById("nope")).toThrow(expect.objectContaining({ code: "UNKNOWN_NAME" }));
    expect(() => methodById("nope")).toThrow(/all-at-once, step-by-step, binary-search, hybrid, a2p, raffles, tracer/);
  });

  it("names the option that is wrong", () => {
    expect(() => methodById("tracer").configure({ logBudget: -1 })).toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID", where: "method tracer.logBudget" }),
    );
    expect(() => methodById("all-at-once").configure({ colour: "red" })).toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID" }),
    );
  });

  it.each(["all-at-once", "tracer"])("%s says that it needs a model", async (id) => {
    await expect(ask(id)).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  });
});
