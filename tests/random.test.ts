import { describe, expect, it } from "vitest";
import { derivedSeed, stream } from "../src/random.ts";

const draws = (...name: [number, ...(string | number)[]]): number[] => {
  const random = stream(...name);
  return Array.from({ length: 5 }, () => random.next());
};

describe("named streams", () => {
  it("repeat for the same seed and name and differ for any other", () => {
    expect(draws(1, "a")).toEqual(draws(1, "a"));
    const names = [draws(1, "a"), draws(2, "a"), draws(1, "b"), draws(1, "a", 0), draws(1, "a", "0"), draws(1, "a,0")];
    expect(new Set(names.map(String)).size).toBe(names.length);
  });

  it("are uniform enough: mean, shares of a die, permutations", () => {
    const random = stream(7, "uniform");
    const n = 60_000;
    let sum = 0;
    const die = [0, 0, 0, 0, 0, 0];
    for (let i = 0; i < n; i++) {
      sum += random.next();
      const face = random.int(6);
      die[face] = (die[face] ?? 0) + 1;
    }
    // Five standard errors.
    expect(Math.abs(sum / n - 0.5)).toBeLessThan(5 * Math.sqrt(1 / 12 / n));
    for (const count of die) expect(Math.abs(count / n - 1 / 6)).toBeLessThan(5 * Math.sqrt(5 / 36 / n));
    expect([...random.shuffle([1, 2, 3, 4, 5])].sort()).toEqual([1, 2, 3, 4, 5]);
  });

  it("gives seeds that a model server takes, and refuses to pick from nothing", () => {
    const seeds = Array.from({ length: 100 }, (_, i) => derivedSeed(1, "call", i));
    expect(seeds.every((seed) => Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31)).toBe(true);
    expect(new Set(seeds).size).toBe(100);
    expect(() => stream(1).pick([])).toThrow(RangeError);
  });
});
