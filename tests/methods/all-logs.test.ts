import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import { predictionSchema } from "../../src/evaluation/prediction.ts";
import { evaluate } from "../../src/evaluation/run.ts";
import { METHODS } from "../../src/methods/registry.ts";
import { promptCharacters } from "../../src/methods/shared/log-prompt.ts";
import { methodView } from "../../src/methods/view.ts";
import { run } from "../evaluation/items.ts";
import { plausibleModel, type Style, shownSteps } from "./plausible-model.ts";

const { items } = await loadWhoAndWhen();
const asking = METHODS.filter((method) => method.needs.model).map((method) => [method.id, method] as const);

describe.each(asking)("%s", (id, method) => {
  it("finishes on every log of Who&When, as planned", { timeout: 120_000 }, async () => {
    expect(items).toHaveLength(184);
    const model = plausibleModel({
      decisive: (step) => step >= 4,
      half: (asked) => (asked % 2 ? "later" : "earlier"),
      blame: 0.5,
    });
    const configured = method.configure({ logBudget: 40_000 });
    const { predictions, stoppedBy } = await evaluate({
      items,
      method: configured,
      withReference: false,
      context: { model, seed: 1 },
    });
    expect(stoppedBy).toBeUndefined();
    expect(predictions).toHaveLength(184);
    let calls = 0;
    for (const [i, prediction] of predictions.entries()) {
      expect(predictionSchema.parse(JSON.parse(JSON.stringify(prediction)))).toEqual(prediction);
      const view = methodView(items[i]!.trajectory, { withReference: false });
      const plan = configured.plan(view);
      expect(prediction.error).toBeUndefined();
      expect(prediction.calls).toBeGreaterThanOrEqual(plan.calls.low);
      expect(prediction.calls).toBeLessThanOrEqual(plan.calls.high);
      expect(plan.calls.expected).toBeGreaterThanOrEqual(plan.calls.low);
      expect(plan.calls.expected).toBeLessThanOrEqual(plan.calls.high);
      if (prediction.step !== null) expect(view.steps[prediction.step]).toBeDefined();
      calls += prediction.calls;
    }
    expect(calls).toBe(model.asked());
    // The tracer's format is another one; of hybrid's agents some do not act from step 4 on.
    const answered = predictions.filter(({ step }) => step !== null).length;
    if (id !== "tracer") expect(answered).toBeGreaterThan(id === "hybrid" ? 100 : 180);
  });

  it("keeps within its plan whatever the log and the answers", async () => {
    const logs = fc.array(fc.constantFrom("A", "B", "C (x)", "B (-> A)"), { minLength: 1, maxLength: 25 });
    const styles: fc.Arbitrary<Style> = fc.record({
      decisive: fc.func(fc.boolean()),
      half: fc.func(fc.constantFrom("earlier", "later")),
      confidence: fc.integer({ min: 0, max: 100 }),
      blame: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    await fc.assert(
      fc.asyncProperty(logs, styles, async (agents, style) => {
        const view = methodView(run("r", agents, 0).trajectory, { withReference: false });
        const configured = method.configure();
        let characters = 0;
        const model = plausibleModel(style, ({ messages }) => {
          characters += promptCharacters({ messages: [...messages] });
        });
        const { calls } = await configured.attribute(view, { seed: 1, epoch: 0, model });
        const plan = configured.plan(view);
        expect(calls).toBe(model.asked());
        expect(calls).toBeGreaterThanOrEqual(plan.calls.low);
        expect(calls).toBeLessThanOrEqual(plan.calls.high);
        expect(plan.calls.low <= plan.calls.expected && plan.calls.expected <= plan.calls.high).toBe(true);
        // Where one call is all there is, its prompt is known to the character.
        if (plan.calls.high === 1 && plan.calls.low === 1) expect(plan.promptCharacters).toBe(characters);
      }),
      { numRuns: 40 },
    );
  });

  it("says of a log without steps that it has none, or asks about it as it is", async () => {
    const { trajectory } = run("r", ["A"], 0);
    const view = methodView({ ...trajectory, steps: [] }, { withReference: false });
    const model = {
      ...plausibleModel({}),
      complete: async () => ({ content: "", toolCalls: [], finishReason: "stop" as const, model: "m" }),
    };
    const configured = method.configure();
    const attribution = await configured.attribute(view, { seed: 1, epoch: 0, model });
    expect(attribution).toMatchObject({ agent: null, step: null, parsePath: "none" });
    expect(attribution.parseFailure).toBeDefined();
    const { calls } = configured.plan(view);
    expect(attribution.calls).toBeGreaterThanOrEqual(calls.low);
    expect(attribution.calls).toBeLessThanOrEqual(calls.high);
  });

  it("needs a model, takes a log budget and sampling options, and refuses others", async () => {
    const view = methodView(run("r", ["A", "B"], 0).trajectory, { withReference: false });
    await expect(method.configure().attribute(view, { seed: 1, epoch: 0 })).rejects.toMatchObject({
      code: "CONFIG_INVALID",
    });
    expect(method.configure({ logBudget: 1000, temperature: 0.5, maxTokens: 64 }).options).toMatchObject({
      logBudget: 1000,
    });
    expect(() => method.configure({ logBudget: 0 })).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
    expect(() => method.configure({ structured: "always" })).toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID" }),
    );
  });

  it("passes sampling, epoch, signal and budget on to every call", async () => {
    const { trajectory } = run("r", ["A", "B", "A", "C"], 0);
    const steps = trajectory.steps.map((step) => ({ ...step, content: "x".repeat(3000) }));
    const view = methodView({ ...trajectory, steps }, { withReference: false });
    const { signal } = new AbortController();
    let asked = 0;
    const model = plausibleModel({ blame: 1 }, (request, options) => {
      asked++;
      expect(request).toMatchObject({ temperature: 0.5, topP: 0.9, maxTokens: 64 });
      expect(options).toMatchObject({ epoch: 3, signal });
      const shown = shownSteps(request).length;
      const log = request.messages[1]!.content.match(/x{3,}/gu)?.join("").length ?? 0;
      expect(log).toBeLessThanOrEqual(2000);
      expect(shown).toBeGreaterThan(0);
    });
    const { cut } = await method
      .configure({ logBudget: 2000, temperature: 0.5, topP: 0.9, maxTokens: 64 })
      .attribute(view, { seed: 1, epoch: 3, signal, model });
    expect(asked).toBeGreaterThan(0);
    expect(cut).toMatchObject({ stepsCut: 4, overBudget: false });
  });
});
