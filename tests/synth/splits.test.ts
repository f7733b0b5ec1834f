import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stream } from "../../src/random.ts";
import { heldOutGroups } from "../../src/trajectory/split.ts";

const rule = (share: number, seed: number, cut: "exact" | "stable") => ({ share, seed, name: "split", cut });

describe("grouped splits", () => {
  const groups = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 60 });

  it("hold out the share of groups, whatever the order and however often a group occurs (seed printed on failure)", () => {
    fc.assert(
      fc.property(groups, fc.double({ min: 0, max: 1, noNaN: true }), fc.integer(), (ids, share, seed) => {
        const held = heldOutGroups([...ids, ...ids], rule(share, seed, "exact"));
        expect(held.size).toBe(Math.round(ids.length * share));
        expect(heldOutGroups([...ids].reverse(), rule(share, seed, "exact"))).toEqual(held);
        for (const id of held) expect(ids).toContain(id);
      }),
    );
  });

  it("make a 9:1 split of a hundred groups", () => {
    const ids = Array.from({ length: 100 }, (_, index) => `g${index}`);
    expect(heldOutGroups(ids, rule(0.1, 1, "exact")).size).toBe(10);
  });

  it("with a stable cut leave every group on its side when others are added, each by its own draw", () => {
    fc.assert(
      fc.property(groups, groups, fc.integer(), (ids, more, seed) => {
        const held = heldOutGroups(ids, rule(0.3, seed, "stable"));
        const after = heldOutGroups([...ids, ...more], rule(0.3, seed, "stable"));
        for (const id of ids) {
          expect(after.has(id)).toBe(held.has(id));
          expect(held.has(id)).toBe(stream(seed, "split", id).chance(0.3));
        }
      }),
    );
  });

  it("are independent under different names", () => {
    const ids = Array.from({ length: 1000 }, (_, index) => `g${index}`);
    const a = heldOutGroups(ids, { share: 0.5, seed: 1, name: "a", cut: "exact" });
    const b = heldOutGroups(ids, { share: 0.5, seed: 1, name: "b", cut: "exact" });
    const both = [...a].filter((id) => b.has(id)).length;
    // Hypergeometric: mean 250, standard deviation 7.9.
    expect(Math.abs(both - 250)).toBeLessThan(40);
  });
});
