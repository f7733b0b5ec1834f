import { describe, expect, it } from "vitest";
import { type ErrorCode, RootstepError } from "../../src/errors.ts";
import { planEvaluation } from "../../src/evaluation/plan.ts";
import { type Prediction, predictionKey, predictionSchema } from "../../src/evaluation/prediction.ts";
import { type EvaluateOptions, evaluate } from "../../src/evaluation/run.ts";
import { methodById } from "../../src/methods/registry.ts";
import type { ChatRequest } from "../../src/models/chat-model.ts";
import { captureModel } from "../methods/capture-model.ts";
import { run } from "./items.ts";

const items = Array.from({ length: 6 }, (_, i) => run(`i${i}`, ["A", "B", "C"], i % 3));
const method = methodById("all-at-once").configure();
const answer = { content: "Agent Name: A\nStep Number: 0" };
const taskOf = (request: ChatRequest): string => /task (i\d)/.exec(request.messages[1]!.content)![1]!;
const byKey = (predictions: readonly Prediction[]) => new Map(predictions.map((p) => [predictionKey(p), p]));
const start = (over: Partial<EvaluateOptions> & Pick<EvaluateOptions, "context">) =>
  evaluate({ items, method, withReference: false, now: () => 0, ...over });

/** Lets every pending promise go on, so that what can finish has finished. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("evaluate", () => {
  it("makes one prediction per log and epoch, each in the shape of the schema", async () => {
    const model = captureModel(() => answer);
    const { predictions, planned, stoppedBy } = await start({ context: { model, seed: 1 }, epochs: 2 });
    expect(planned).toBe(12);
    expect(stoppedBy).toBeUndefined();
    expect(predictions.map((p) => `${p.itemId}/${p.epoch}`)).toEqual(items.flatMap((i) => [`${i.id}/0`, `${i.id}/1`]));
    expect(model.requests.map(({ options }) => options!.epoch)).toEqual(Array(6).fill([0, 1]).flat());
    for (const prediction of predictions) {
      expect(predictionSchema.parse(JSON.parse(JSON.stringify(prediction)))).toEqual(prediction);
    }
  });

  it("gives the same file whatever the concurrency and the order in which answers come", async () => {
    const serial = await start({ context: { model: captureModel(() => answer), seed: 1 }, epochs: 2 });
    const waiting: (() => void)[] = [];
    const model = captureModel(() => new Promise((resolve) => waiting.push(() => resolve(answer))));
    const order: string[] = [];
    const going = start({
      context: { model, seed: 1 },
      epochs: 2,
      concurrency: 4,
      onPrediction: (p) => void order.push(p.itemId + p.epoch),
    });
    // The last asked is answered first.
    while (order.length < 12) {
      await settle();
      waiting.pop()?.();
    }
    const parallel = await going;
    expect(parallel.predictions).toEqual(serial.predictions);
    expect(order).not.toEqual(serial.predictions.map((p) => p.itemId + p.epoch));
  });

  it("asks of each epoch with the very same messages, and makes a log's view once", async () => {
    const model = captureModel(() => answer);
    await start({ context: { model, seed: 1 }, epochs: 3, concurrency: 2 });
    const arrays = new Set(model.requests.map(({ request }) => request.messages));
    expect(model.requests).toHaveLength(18);
    expect(arrays.size).toBe(6);
    const again = captureModel(() => answer);
    await start({ context: { model: again, seed: 1 }, withReference: true });
    expect(again.requests.some(({ request }) => arrays.has(request.messages))).toBe(false);
  });

  it("begins no further log than told while a prediction is not yet kept", async () => {
    const model = captureModel(() => answer);
    const keep: (() => void)[] = [];
    const going = start({
      context: { model, seed: 1 },
      concurrency: 2,
      onPrediction: () => new Promise((resolve) => keep.push(resolve)),
    });
    for (let n = 0; n < 10; n++) await settle();
    expect([model.requests.length, keep.length]).toEqual([2, 2]);
    while (keep.length > 0) {
      keep.pop()?.();
      for (let n = 0; n < 10; n++) await settle();
    }
    expect((await going).predictions).toHaveLength(6);
  });

  it("has no more calls under way than told", async () => {
    let under = 0;
    let most = 0;
    const model = captureModel(async () => {
      most = Math.max(most, ++under);
      await settle();
      under--;
      return answer;
    });
    await start({ context: { model, seed: 1 }, concurrency: 3 });
    expect(most).toBe(3);
  });

  it("keeps what is done and asks only for the rest", async () => {
    const first = await start({ context: { model: captureModel(() => answer), seed: 1 }, limit: 2 });
    const model = captureModel(() => answer);
    const fresh: string[] = [];
    const second = await start({
      context: { model, seed: 1 },
      done: byKey(first.predictions),
      onPrediction: (p) => void fresh.push(p.itemId),
    });
    expect(fresh).toEqual(["i2", "i3", "i4", "i5"]);
    const whole = await start({ context: { model: captureModel(() => answer), seed: 1 } });
    expect(second.predictions).toEqual(whole.predictions);
  });

  it.each<ErrorCode>(["MODEL_TIMEOUT", "MODEL_REFUSED_REQUEST", "MODEL_SERVER_ERROR", "MODEL_BAD_BODY"])(
    "records a call that fails with %s, goes on, and makes it again on resume",
    async (code) => {
      let broken = true;
      const model = captureModel((request) => {
        if (broken && taskOf(request) === "i2") throw new RootstepError(code, { what: "it broke" });
        return answer;
      });
      const first = await start({ context: { model, seed: 1 } });
      expect(first.stoppedBy).toBeUndefined();
      expect(first.predictions).toHaveLength(6);
      expect(first.predictions[2]).toMatchObject({ agent: null, step: null, error: { code, message: "it broke" } });
      broken = false;
      const before = model.requests.length;
      const second = await start({ context: { model, seed: 1 }, done: byKey(first.predictions) });
      expect(model.requests.slice(before).map(({ request }) => taskOf(request))).toEqual(["i2"]);
      expect(second.predictions[2]!.error).toBeUndefined();
    },
  );

  it.each<ErrorCode>(["BUDGET_REACHED", "INTERRUPTED", "MODEL_UNREACHABLE", "MODEL_AUTH"])(
    "stops at %s: nothing new begins, what is under way ends, nothing is recorded as failed",
    async (code) => {
      const gate: (() => void)[] = [];
      const model = captureModel(async (request) => {
        if (taskOf(request) === "i1") throw new RootstepError(code, { what: "stop" });
        await new Promise<void>((resolve) => gate.push(resolve));
        return answer;
      });
      const going = start({ context: { model, seed: 1 }, concurrency: 2 });
      await settle();
      for (const open of gate) open();
      const { predictions, stoppedBy, planned } = await going;
      expect(stoppedBy).toMatchObject({ code });
      expect(predictions.map((p) => p.itemId)).toEqual(["i0"]);
      expect(planned).toBe(6);
      expect(model.requests).toHaveLength(2);
    },
  );

  it("stops when interrupted", async () => {
    const controller = new AbortController();
    const model = captureModel(() => answer);
    const { predictions, stoppedBy } = await start({
      context: { model, seed: 1 },
      signal: controller.signal,
      onPrediction: (p) => {
        if (p.itemId === "i1") controller.abort();
      },
    });
    expect(stoppedBy).toMatchObject({ code: "INTERRUPTED" });
    expect(predictions.map((p) => p.itemId)).toEqual(["i0", "i1"]);
    expect(model.requests[0]!.options!.signal).toBe(controller.signal);
  });

  it("throws what is a fault of ours, and what keeping a prediction throws", async () => {
    const broken = captureModel(() => {
      throw new TypeError("x is not a function");
    });
    await expect(start({ context: { model: broken, seed: 1 } })).rejects.toMatchObject({ code: "INTERNAL" });
    const full = new RootstepError("FILE_UNREADABLE", { what: "disk full" });
    const fine = captureModel(() => answer);
    const keeping = start({ context: { model: fine, seed: 1 }, onPrediction: () => Promise.reject(full) });
    await expect(keeping).rejects.toBe(full);
    expect(fine.requests).toHaveLength(1);
  });

  it("shows the reference answer only when told", async () => {
    const withAnswer = items.map((item) => ({
      ...item,
      trajectory: { ...item.trajectory, task: { ...item.trajectory.task, referenceAnswer: "forty-two" } },
    }));
    for (const withReference of [true, false]) {
      const model = captureModel(() => answer);
      await start({ items: withAnswer, context: { model, seed: 1 }, withReference });
      const said = model.requests.filter(({ request }) => JSON.stringify(request).includes("forty-two"));
      expect(said).toHaveLength(withReference ? 6 : 0);
    }
  });

  it("measures each prediction by the clock it is given", async () => {
    let time = 0;
    const model = captureModel(() => {
      time += 250;
      return answer;
    });
    const { predictions } = await start({ context: { model, seed: 1 }, now: () => time });
    expect(predictions.map((p) => p.latencyMs)).toEqual(Array(6).fill(250));
  });
});

describe("planEvaluation", () => {
  it("counts calls and estimates tokens from the prompts themselves", async () => {
    const model = captureModel(() => answer);
    await start({ context: { model, seed: 1 }, limit: 4 });
    const characters = model.requests
      .flatMap(({ request }) => request.messages)
      .reduce((total, message) => total + message.content.length, 0);
    const plan = planEvaluation(items, method, { withReference: false, limit: 4, epochs: 3 });
    expect(plan).toMatchObject({ items: 4, predictions: 12, calls: { low: 12, expected: 12, high: 12 } });
    expect(plan.promptTokens.expected).toBe(Math.round((3 * characters) / 4));
    expect(plan.promptTokens.low).toBeLessThan(plan.promptTokens.expected);
    expect(plan.promptTokens.high).toBeGreaterThan(plan.promptTokens.expected);
    expect(plan.completionTokens.high).toBe(12 * 2048);
  });

  it("plans nothing for a floor", () => {
    const plan = planEvaluation(items, methodById("floor-random").configure(), { withReference: false });
    expect(plan).toMatchObject({
      predictions: 6,
      calls: { high: 0 },
      promptTokens: { high: 0 },
      completionTokens: { high: 0 },
    });
  });
});
