import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { splitByGroup } from "../../synth/dataset/splits.ts";

describe("grouped splits", () => {
  const groups = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 60 });

  it("puts the share of groups in the test split, each group in one split, whatever the order (seed printed on failure)", () => {
    fc.assert(
      fc.property(groups, fc.double({ min: 0, max: 1, noNaN: true }), fc.integer(), (ids, share, seed) => {
        const split = splitByGroup([...ids, ...ids], share, seed);
        const test = [...split.values()].filter((name) => name === "test").length;
        expect(split.size).toBe(ids.length);
        expect(test).toBe(Math.round(ids.length * share));
        const reversed = splitByGroup([...ids].reverse(), share, seed);
        for (const id of ids) expect(reversed.get(id)).toBe(split.get(id));
      }),
    );
  });

  it("makes a 9:1 split of a hundred groups", () => {
    const ids = Array.from({ length: 100 }, (_, index) => `g${index}`);
    expect([...splitByGroup(ids, 0.1, 1).values()].filter((name) => name === "test")).toHaveLength(10);
  });
});
