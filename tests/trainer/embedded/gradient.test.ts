import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { shippedPath } from "../../../src/package-root.ts";
import { stream } from "../../../src/random.ts";
import { type EmbeddedEngine, openEmbeddedEngine } from "../../../trainer/engines/embedded/engine.ts";
import { readManifest } from "../../../trainer/engines/embedded/manifest.ts";
import { floatBytes } from "../../../trainer/engines/embedded/state.ts";
import type { Loss, TrainingGroup } from "../../../trainer/engines/engine.ts";
import { ADAM, asGroups, failedRuns, fixture, formulaWeights, largestDifference, trainingGroups } from "./support.ts";

const CROSS_ENTROPY: Loss = { kind: "cross-entropy" };
const CLIPPED: Loss = { kind: "clipped-surrogate", clipLow: 0.2, clipHigh: 0.2 };
/** Plain SGD out of AdamW's first moment: one step from zero moments with β1 = 0 and ε ≫ √v moves by lr·g/ε. */
const AS_SGD = { ...ADAM, learningRate: 1e6, beta1: 0, beta2: 0, epsilon: 1e6, maxGradNorm: Number.MAX_VALUE };

let engine: EmbeddedEngine;
let weights: Float32Array;

beforeAll(async () => {
  const { model } = await readManifest(shippedPath("data", "embedded"));
  weights = formulaWeights(model);
  engine = await openEmbeddedEngine({ weights });
});
afterAll(() => engine.close());

/** Loss, gradient norm and gradient, read off the engine from outside through one optimiser step. */
async function gradientOf(groups: readonly TrainingGroup[], loss: Loss) {
  await engine.importState({ weights: floatBytes(weights) });
  const result = await engine.forwardBackward(groups, loss);
  const { gradNorm } = await engine.optimStep(AS_SGD);
  const moments = (await engine.exportState()).optimizer!;
  // with β1 = 0 the first moment is the gradient itself
  const gradient = new Float32Array(moments.slice(8, 8 + 4 * weights.length).buffer);
  return { ...result, gradNorm, gradient };
}

async function lossAt(at: Float32Array, groups: readonly TrainingGroup[], loss: Loss): Promise<number> {
  await engine.importState({ weights: floatBytes(at) });
  return (await engine.forwardBackward(groups, loss)).loss;
}

describe("gradients against torch", () => {
  test("the formula gives the weights that torch used", () => {
    expect(weights.length).toBe(fixture.weights.count);
    expect([...weights.slice(0, 4)]).toEqual(fixture.weights.first);
    expect([...weights.slice(-4)]).toEqual(fixture.weights.last);
    expect(weights.reduce((a, b) => a + b, 0)).toBeCloseTo(fixture.weights.sum, 8);
  });

  test.each([
    ["clipped surrogate, groups of eight that share a prompt", fixture.clippedSurrogate, CLIPPED],
    ["cross-entropy on prompt and completion", fixture.crossEntropy, CROSS_ENTROPY],
  ])("%s", async (_, expected, loss) => {
    const got = await gradientOf(trainingGroups(expected.groups), loss);
    expect(Math.abs(got.loss / expected.loss - 1)).toBeLessThan(1e-5);
    expect(Math.abs(got.gradNorm / expected.gradNorm - 1)).toBeLessThan(1e-5);
    const entries = expected.gradient.indices.map((i) => got.gradient[i]!);
    const largest = Math.max(...expected.gradient.values.map(Math.abs));
    expect(largestDifference(entries, expected.gradient.values) / largest).toBeLessThan(1e-5);
  });

  test("log-probabilities of given tokens, with and without gradient", async () => {
    const groups = trainingGroups(fixture.crossEntropy.groups);
    const { logprobs } = await gradientOf(groups, CROSS_ENTROPY);
    await engine.importState({ weights: floatBytes(weights) });
    expect(await engine.forward(groups)).toEqual(logprobs);
    logprobs.forEach((group, g) => {
      expect(largestDifference(group[0]!, fixture.crossEntropy.logprobs[g]!)).toBeLessThan(1e-4);
    });
  });
});

describe("gradients against finite differences", () => {
  test.each([
    ["clipped surrogate", fixture.clippedSurrogate, CLIPPED],
    ["cross-entropy", fixture.crossEntropy, CROSS_ENTROPY],
  ])("%s", async (name, { groups }, loss) => {
    const items = trainingGroups(groups);
    const { gradient, gradNorm } = await gradientOf(items, loss);
    const random = stream("finite differences", name);
    const along = Float32Array.from(gradient, (g) => g / gradNorm + random.normal() / Math.sqrt(weights.length));
    const h = 2e-3;
    const [up, down] = [await lossAt(moved(along, h), items, loss), await lossAt(moved(along, -h), items, loss)];
    const slope = along.reduce((sum, x, i) => sum + x * gradient[i]!, 0);
    expect((up - down) / (2 * h) / slope).toBeCloseTo(1, 2);
  });

  function moved(along: Float32Array, by: number): Float32Array {
    return weights.map((w, i) => w + by * along[i]!);
  }
});

describe("sampler and trainer", () => {
  test("give the same log-probabilities: the ratio is 1 at unchanged weights", async () => {
    await engine.importState({ weights: floatBytes(weights) });
    const prompts = failedRuns("ratio", 12).map((run) => engine.codec.encodePrompt(run.trajectory));
    for (const n of [8, 1]) {
      const samples = await engine.sample({ prompts, n, temperature: 1, seed: "ratio" });
      const scored = await engine.forward(asGroups(prompts, samples));
      samples.forEach((group, p) => {
        group.forEach(({ logprobs }, k) => {
          expect(largestDifference(logprobs, scored[p]![k]!)).toBeLessThan(1e-4);
        });
      });
    }
  });

  test("padding, missing members of a group and micro-batches do not change a group's log-probabilities", async () => {
    const groups = trainingGroups(fixture.clippedSurrogate.groups);
    const whole = await engine.forward(groups);
    const apart = await Promise.all(
      groups.map((group) => engine.forward([{ ...group, completions: group.completions.slice(0, 3) }])),
    );
    apart.forEach(([group], g) => {
      expect(group).toHaveLength(3);
      group!.forEach((logprobs, k) => {
        expect(largestDifference(logprobs, whole[g]![k]!)).toBeLessThan(1e-5);
      });
    });
  });
});

describe("repeatability", () => {
  test("the same calls give the same bits", async () => {
    const groups = trainingGroups(fixture.clippedSurrogate.groups);
    const [first, second] = [await gradientOf(groups, CLIPPED), await gradientOf(groups, CLIPPED)];
    expect(second.logprobs).toEqual(first.logprobs);
    expect([second.loss, second.gradNorm]).toEqual([first.loss, first.gradNorm]);
    expect(Buffer.compare(floatBytes(second.gradient), floatBytes(first.gradient))).toBe(0);
  });

  test("gradients of several calls add up to that of one call", async () => {
    const groups = trainingGroups(fixture.clippedSurrogate.groups);
    const whole = await gradientOf(groups, CLIPPED);
    await engine.importState({ weights: floatBytes(weights) });
    for (const group of groups) await engine.forwardBackward([group], CLIPPED);
    const { gradNorm } = await engine.optimStep(AS_SGD);
    expect(Math.abs(gradNorm / whole.gradNorm - 1)).toBeLessThan(1e-5);
  });
});
