import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { adamStep, freshAdam, norm } from "../../../trainer/engines/embedded/adam.ts";
import { type EmbeddedEngine, openEmbeddedEngine } from "../../../trainer/engines/embedded/engine.ts";
import type { EngineState, Loss } from "../../../trainer/engines/engine.ts";
import { ADAM, asGroups, failedRuns, fixture } from "./support.ts";

const CLIPPED: Loss = { kind: "clipped-surrogate", clipLow: 0.2, clipHigh: 0.2 };

let engine: EmbeddedEngine;
let other: EmbeddedEngine;
let shipped: EngineState;

beforeAll(async () => {
  engine = await openEmbeddedEngine();
  other = await openEmbeddedEngine();
  shipped = await engine.exportState();
});
beforeEach(async () => {
  await engine.importState(shipped);
  await other.importState(shipped);
});
afterAll(async () => {
  await engine.close();
  await other.close();
});

/** Blobs as base64: the matcher compares two strings, not a million elements. */
const blobs = ({ weights, optimizer }: EngineState) => ({
  weights: Buffer.from(weights).toString("base64"),
  optimizer: Buffer.from(optimizer ?? []).toString("base64"),
});

/** One GRPO-like update on its own samples. */
async function update(on: EmbeddedEngine, step: number) {
  const prompts = failedRuns(`update ${step}`, 4).map((run) => on.codec.encodePrompt(run.trajectory));
  const samples = await on.sample({ prompts, n: 8, temperature: 1, seed: `step ${step}` });
  const { loss } = await on.forwardBackward(asGroups(prompts, samples), CLIPPED);
  return { samples, loss, ...(await on.optimStep(ADAM)) };
}

test("AdamW moves weights as torch.optim.AdamW does behind clip_grad_norm_", () => {
  const { start, gradients, settings, gradNorms, weights } = fixture.adamW;
  const current = Float32Array.from(start);
  const state = freshAdam(current.length);
  gradients.forEach((values, step) => {
    const gradient = Float32Array.from(values);
    expect(norm(gradient)).toBeCloseTo(gradNorms[step]!, 5);
    adamStep(current, gradient, norm(gradient), state, settings);
    current.forEach((w, i) => {
      expect(Math.abs(w - weights[step]![i]!)).toBeLessThan(3e-7);
    });
  });
  expect(state.steps).toBe(gradients.length);
});

describe("checkpoints", () => {
  test("state survives export and import bit for bit", async () => {
    await update(engine, 1);
    const state = await engine.exportState();
    await other.importState(state);
    expect(blobs(await other.exportState())).toEqual(blobs(state));
  });

  test("training goes on from a checkpoint as if it had not stopped", async () => {
    await update(engine, 1);
    const state = await engine.exportState();
    const straight = await update(engine, 2);
    await other.importState(state);
    expect(await update(other, 2)).toEqual(straight);
    expect(blobs(await other.exportState())).toEqual(blobs(await engine.exportState()));
  });

  test("an exported state does not move with later updates", async () => {
    const before = await engine.exportState();
    const copy = blobs(before);
    await update(engine, 1);
    expect(blobs(before)).toEqual(copy);
    expect(blobs(await engine.exportState()).weights).not.toBe(copy.weights);
  });

  test("weights alone start with fresh moments", async () => {
    await update(engine, 1);
    const { weights } = await engine.exportState();
    await engine.importState({ weights });
    expect((await engine.exportState()).optimizer!.every((byte) => byte === 0)).toBe(true);
  });

  test("an import drops gradients that were not applied", async () => {
    const state = await engine.exportState();
    const prompts = failedRuns("dropped", 2).map((run) => engine.codec.encodePrompt(run.trajectory));
    const samples = await engine.sample({ prompts, n: 8, temperature: 1, seed: "dropped" });
    await engine.forwardBackward(asGroups(prompts, samples), CLIPPED);
    await engine.importState(state);
    expect(await engine.optimStep(ADAM)).toEqual({ gradNorm: 0 });
  });

  test.each<[string, (state: EngineState) => EngineState]>([
    ["weights cut short", ({ weights }) => ({ weights: weights.slice(0, -4) })],
    ["weights that are not numbers", ({ weights }) => ({ weights: weights.slice().fill(255, 40, 44) })],
    ["moments cut short", ({ weights, optimizer }) => ({ weights, optimizer: optimizer!.slice(0, -1) })],
    [
      "a step count that is none",
      ({ weights, optimizer }) => ({ weights, optimizer: optimizer!.slice().fill(255, 0, 8) }),
    ],
  ])("%s are refused, and the engine keeps its own", async (_, damage) => {
    const state = await engine.exportState();
    await expect(engine.importState(damage(state))).rejects.toMatchObject({ code: "CHECKPOINT_CORRUPT" });
    expect(blobs(await engine.exportState())).toEqual(blobs(state));
  });
});

describe("numbers that are not finite", () => {
  const [prompt, completion] = [[20, 30], { tokens: [40, 2], weights: [1, 1], advantage: 1, oldLogprobs: [-1, -1] }];

  test("a loss stops the update, and weights stay", async () => {
    const state = await engine.exportState();
    const wrong = { ...completion, advantage: Number.NaN };
    await expect(engine.forwardBackward([{ prompt, completions: [wrong] }], CLIPPED)).rejects.toMatchObject({
      code: "ENGINE_NAN",
    });
    expect(await engine.optimStep(ADAM)).toEqual({ gradNorm: 0 });
    expect(blobs(await engine.exportState())).toMatchObject({ weights: blobs(state).weights });
  });

  test("a gradient stops the update, is dropped, and weights stay", async () => {
    // each loss is finite, their gradients' sum is not
    const huge = { ...completion, weights: [3e36, 3e36] };
    for (let i = 0; i < 100; i += 1)
      await engine.forwardBackward([{ prompt, completions: [huge] }], { kind: "cross-entropy" });
    await expect(engine.optimStep(ADAM)).rejects.toMatchObject({ code: "ENGINE_NAN" });
    expect(blobs(await engine.exportState())).toEqual(blobs(shipped));
    expect(await engine.optimStep(ADAM)).toEqual({ gradNorm: 0 });
  });
});

test("the clipped surrogate without old log-probabilities is refused", async () => {
  const completions = [{ tokens: [40, 2], weights: [1, 1], advantage: 1 }];
  await expect(engine.forwardBackward([{ prompt: [20], completions }], CLIPPED)).rejects.toMatchObject({
    code: "ENGINE_FAILED",
  });
});
