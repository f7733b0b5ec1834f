import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { clipBound, learningRateAt } from "../../trainer/clip-schedule.ts";

describe("the clip schedule of §4.2", () => {
  // B_s = max(0.2·B0, B0·(1 − s/S)), worked out by hand.
  it.each([
    { s: 0, S: 100, B0: 0.2, expected: 0.2 },
    { s: 25, S: 100, B0: 0.2, expected: 0.15 },
    { s: 50, S: 100, B0: 0.2, expected: 0.1 },
    { s: 80, S: 100, B0: 0.2, expected: 0.04 },
    { s: 81, S: 100, B0: 0.2, expected: 0.04 },
    { s: 99, S: 100, B0: 0.2, expected: 0.04 },
    { s: 3, S: 4, B0: 0.4, expected: 0.1 },
    { s: 0, S: 1, B0: 0.3, expected: 0.3 },
  ])("is $expected at s = $s of $S with B0 = $B0", ({ s, S, B0, expected }) => {
    expect(clipBound(s, S, B0)).toBeCloseTo(expected, 12);
  });

  it("never rises and stays within [0.2·B0, B0]", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 500 }), fc.double({ min: 0.01, max: 1, noNaN: true }), (S, B0) => {
        for (let s = 1; s < S; s++) {
          const bound = clipBound(s, S, B0);
          expect(bound).toBeLessThanOrEqual(clipBound(s - 1, S, B0));
          expect(bound).toBeGreaterThanOrEqual(0.2 * B0);
        }
      }),
      { seed: 1, numRuns: 50 },
    );
  });
});

describe("the learning rate", () => {
  const schedule = { learningRate: 1, warmup: 4, decay: "linear", decayFloor: 0.1 } as const;

  it("rises over the warm-up, falls after it and stops at the floor", () => {
    expect([0, 1, 2, 3].map((s) => learningRateAt(s, 1000, { ...schedule, decay: "constant" }))).toEqual([
      0.25, 0.5, 0.75, 1,
    ]);
    expect(learningRateAt(50, 100, schedule)).toBeCloseTo(0.5, 12);
    expect(learningRateAt(99, 100, schedule)).toBeCloseTo(0.1, 12);
    expect(learningRateAt(50, 100, { ...schedule, decay: "cosine" })).toBeCloseTo(0.5, 12);
    expect(learningRateAt(25, 100, { ...schedule, decay: "cosine" })).toBeCloseTo((1 + Math.SQRT1_2) / 2, 12);
  });
});
