import { describe, expect, it } from "vitest";
import { trainConfigSchema } from "../../trainer/config.ts";
import { buildExamples } from "../../trainer/dataset.ts";
import type { TrainingEngine, TrainingGroup } from "../../trainer/engines/engine.ts";
import { chunks, trainingGroups, updatePolicy } from "../../trainer/policy-update.ts";
import type { Rollout, RolloutGroup } from "../../trainer/rollouts.ts";
import { createTabularEngine, faultyRun, tabularCodec } from "./tabular-engine.ts";

const [example] = buildExamples([faultyRun("run", 1)], tabularCodec, {
  labels: ["injection"],
  maxPrompt: 1,
  withReference: true,
}).examples;

function group(
  lengths: readonly number[],
  advantages_G: readonly number[],
  masked: readonly number[] = [],
): RolloutGroup {
  return {
    example: example!,
    rollouts_G: lengths.map(
      (length, g): Rollout => ({
        tokens: new Array(length).fill(g),
        logprobs: new Array(length).fill(-1),
        finishReason: "stop",
        reward: { total: 0, format: 1, step: 0, agent: 0 },
        score: 0,
        masked: masked.includes(g),
      }),
    ),
    advantages: { advantages_G, mean: 0, std: 1, dead: false },
  };
}

const old = (groups: readonly RolloutGroup[]) =>
  groups.map(({ rollouts_G }) => rollouts_G.map(({ logprobs }) => logprobs));

describe("the groups that go to the engine", () => {
  it("carry each completion's own tokens, advantage and weights over all groups of the update", () => {
    const groups = [group([1, 3], [1, -1]), group([2, 2], [0.5, -0.5], [1])];
    const [first, second] = trainingGroups(groups, old(groups), "sequence-mean");
    // Three unmasked completions of 1, 3 and 2 tokens: a third each, over their tokens.
    expect(first!.completions.map(({ weights }) => weights)).toEqual([[1 / 3], [1 / 9, 1 / 9, 1 / 9]]);
    expect(second!.completions.map(({ weights }) => weights)).toEqual([
      [1 / 6, 1 / 6],
      [0, 0],
    ]);
    expect([first, second].flatMap((each) => each!.completions.map(({ advantage }) => advantage))).toEqual([
      1, -1, 0.5, -0.5,
    ]);
    expect(first!.prompt).toEqual([1]);
    expect(first!.completions[1]!.oldLogprobs).toEqual([-1, -1, -1]);
  });
});

describe("an update", () => {
  /** An engine whose log-probabilities are the sampler's plus the logarithm of the given ratios. */
  function withRatios(ratios_GT: readonly (readonly number[])[]): TrainingEngine {
    return {
      ...createTabularEngine(),
      forwardBackward: async (groups) => ({
        loss: 0,
        logprobs: groups.map(() => ratios_GT.map((ratios) => ratios.map((ratio) => -1 + Math.log(ratio)))),
      }),
    };
  }
  const config = trainConfigSchema.parse({ steps: 1, minibatches: 1 });
  const step = { s: 0, clip: 0.2, learningRate: 0.1 };

  it("counts a token as clipped where the clip stops its gradient, and only over trained tokens", async () => {
    const groups_P = [group([3, 3, 1], [1, -1, 1], [2])];
    // Advantage 1: 1.3 is clipped, .7 is not. Advantage −1: .7 is clipped, 1.3 is not. The masked 9 does not count.
    const engine = withRatios([[1.3, 0.7, 1.1], [1.3, 0.7, 0.9], [9]]);
    const summary = await updatePolicy(engine, config, { groups_P, oldLogprobs_PGT: old(groups_P) }, step);
    expect(summary.clipFraction).toBeCloseTo(2 / 6, 12);
    expect(summary.ratio!.mean).toBeCloseTo(1, 12);
    expect([summary.ratio!.min, summary.ratio!.max]).toEqual([expect.closeTo(0.7, 12), expect.closeTo(1.3, 12)]);
    // Variance: four deviations of .3 and two of .1, over six.
    expect(summary.ratio!.std).toBeCloseTo(Math.sqrt(0.38 / 6), 12);
  });

  it("passes over every group once per epoch, in another order each time", async () => {
    const batches: (readonly TrainingGroup[])[] = [];
    const engine: TrainingEngine = {
      ...createTabularEngine(),
      forwardBackward: async (groups) => {
        batches.push(groups);
        return {
          loss: 0,
          logprobs: groups.map(({ completions }) => completions.map(({ tokens }) => tokens.map(() => -1))),
        };
      },
    };
    const groups_P = Array.from({ length: 10 }, (_, p) => group([1], [p]));
    const batch = { groups_P, oldLogprobs_PGT: old(groups_P) };
    const settings = trainConfigSchema.parse({ steps: 1, minibatches: 3, epochsPerBatch: 2 });
    const { updates } = await updatePolicy(engine, settings, batch, step);
    expect(updates).toBe(6);
    expect(batches.map((groups) => groups.length)).toEqual([3, 3, 4, 3, 3, 4]);
    const order = (parts: typeof batches) => parts.flat().map(({ completions }) => completions[0]!.advantage);
    expect(order(batches.slice(0, 3)).sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(order(batches.slice(3)).sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(order(batches.slice(3))).not.toEqual(order(batches.slice(0, 3)));
    // Token-mean weights belong to the update they are in.
    expect(batches.map((groups) => groups[0]!.completions[0]!.weights[0])).toEqual(
      [3, 3, 4, 3, 3, 4].map((n) => 1 / n),
    );
  });

  it("cuts into at most as many parts as there are groups", () => {
    expect(chunks([1, 2], 5)).toEqual([[1], [2]]);
    expect(chunks([], 5)).toEqual([]);
    expect(chunks([1, 2, 3, 4, 5], 2)).toEqual([
      [1, 2],
      [3, 4, 5],
    ]);
  });
});
