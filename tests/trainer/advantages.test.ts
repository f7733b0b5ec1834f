import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { groupAdvantages } from "../../trainer/advantages.ts";
import { tokenWeights } from "../../trainer/aggregation.ts";

describe("advantages within a group", () => {
  it("are the rewards less their mean, over the sample standard deviation", () => {
    // Rewards 1, 0, .5, .5: mean .5, variance (.25 + .25)/3 = 1/6, std .408248.
    const { advantages_G, mean, std, dead } = groupAdvantages([1, 0, 0.5, 0.5], { normalizeStd: true });
    expect(mean).toBe(0.5);
    expect(std).toBeCloseTo(0.408248, 6);
    expect(dead).toBe(false);
    [1.224742, -1.224742, 0, 0].forEach((expected, g) => {
      expect(advantages_G[g]).toBeCloseTo(expected, 4);
    });
  });

  it("are plain differences without normalisation", () => {
    expect(groupAdvantages([1, 0, 0.5, 0.5], { normalizeStd: false }).advantages_G).toEqual([0.5, -0.5, 0, 0]);
  });

  it("are exactly 0 in a group without variance, which is dead", () => {
    const group = groupAdvantages([0.1, 0.1, 0.1], { normalizeStd: true });
    expect(group).toMatchObject({ advantages_G: [0, 0, 0], dead: true });
    expect(groupAdvantages([0.7], { normalizeStd: true })).toMatchObject({ advantages_G: [0], dead: true });
  });

  it("leave excluded completions out of the baseline", () => {
    const included_G = [true, true, false];
    const { advantages_G, mean } = groupAdvantages([1, 0, 9], { normalizeStd: false, included_G });
    expect(mean).toBe(0.5);
    expect(advantages_G).toEqual([0.5, -0.5, 0]);
    expect(groupAdvantages([1, 9, 9], { normalizeStd: true, included_G: [true, false, false] }).dead).toBe(true);
  });

  it("sum to 0, and do not change when all rewards shift or scale", () => {
    const rewards = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 2, maxLength: 12 });
    fc.assert(
      fc.property(rewards, fc.double({ min: -5, max: 5, noNaN: true }), (rewards_G, shift) => {
        fc.pre(Math.max(...rewards_G) - Math.min(...rewards_G) > 0.01);
        const { advantages_G } = groupAdvantages(rewards_G, { normalizeStd: true });
        const moved = groupAdvantages(
          rewards_G.map((reward) => 3 * reward + shift),
          { normalizeStd: true },
        ).advantages_G;
        expect(Math.abs(advantages_G.reduce((sum, a) => sum + a, 0))).toBeLessThan(1e-9);
        advantages_G.forEach((a, g) => {
          expect(Math.abs(a - moved[g]!)).toBeLessThan(1e-2);
        });
      }),
      { seed: 2, numRuns: 200 },
    );
  });
});

describe("aggregation of token losses", () => {
  const sequences = [
    { length: 4, masked: false },
    { length: 1, masked: false },
    { length: 7, masked: true },
    { length: 0, masked: false },
  ];

  it("weighs every token 1 with token-sum", () => {
    const { weights_NT } = tokenWeights(sequences, "token-sum");
    expect(weights_NT).toEqual([[1, 1, 1, 1], [1], [0, 0, 0, 0, 0, 0, 0], []]);
  });

  it("divides by the unmasked tokens with token-mean", () => {
    const { weights_NT, denominators } = tokenWeights(sequences, "token-mean");
    expect(denominators).toEqual({ tokens: 5, sequences: 2 });
    expect(weights_NT).toEqual([[0.2, 0.2, 0.2, 0.2], [0.2], [0, 0, 0, 0, 0, 0, 0], []]);
  });

  it("gives every completion the same share with sequence-mean", () => {
    const { weights_NT } = tokenWeights(sequences, "sequence-mean");
    expect(weights_NT).toEqual([[0.125, 0.125, 0.125, 0.125], [0.5], [0, 0, 0, 0, 0, 0, 0], []]);
  });

  it("sums to 1 with either mean, whatever the lengths", () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(lengths, fc.constantFrom("token-mean" as const, "sequence-mean" as const), (all, aggregation) => {
        const { weights_NT } = tokenWeights(
          all.map((length) => ({ length, masked: false })),
          aggregation,
        );
        expect(weights_NT.flat().reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 9);
      }),
      { seed: 3, numRuns: 100 },
    );
  });
});
