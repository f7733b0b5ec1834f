import { describe, expect, it } from "vitest";
import { stream } from "../../src/random.ts";
import { eBenjaminiHochberg, levelsOf } from "../../synth/search/e-bh.ts";
import { addBlock, emptyEProcess } from "../../synth/search/e-process.ts";
import { labelEValue, stoppingAlpha } from "../../synth/search/label-e-value.ts";
import { labelLevels } from "../../synth/search/label-levels.ts";

describe("e-BH", () => {
  // By hand, α = .05, so that k·e₍ₖ₎/K has to reach 20.
  it.each([
    // K = 4, sorted 90, 45, 12, 1: 1·90/4 = 22.5 ✓, 2·45/4 = 22.5 ✓, 3·12/4 = 9, 4·1/4 = 1: the two largest.
    [
      [12, 90, 1, 45],
      [false, true, false, true],
    ],
    // K = 2: 1·30/2 = 15 ✗, but 2·20/2 = 20 ✓: the second carries the first.
    [
      [30, 20],
      [true, true],
    ],
    // K = 2: 1·30/2 = 15, 2·19.9/2 = 19.9: none, though 30 alone would pass.
    [
      [30, 19.9],
      [false, false],
    ],
    // K = 3, sorted 61, 5, 0: 61/3 = 20.33 ✓, 10/3, 0: one.
    [
      [0, 5, 61],
      [false, false, true],
    ],
    // K = 3, ties 20, 20, 20: 3·20/3 = 20 ✓: all.
    [
      [20, 20, 20],
      [true, true, true],
    ],
    [[19.99], [false]],
    [[20], [true]],
    [[], []],
  ])("of %j rejects %j", (eValues, rejected) => {
    expect(eBenjaminiHochberg(eValues, 0.05)).toEqual(rejected);
  });

  it("says at which level each hypothesis would be rejected", () => {
    // K = 4, sorted 100, 40, 4, .5: K/(k e) = .04, .05, 1/3, 2 → running minimum from below: .04, .05, 1/3, 1.
    expect(levelsOf([4, 100, 0.5, 40])).toEqual([1 / 3, 0.04, 1, 0.05]);
    // K = 2, sorted 30, 20: 2/30 = .0667, 2/40 = .05 → both .05.
    expect(levelsOf([30, 20])).toEqual([0.05, 0.05]);
    expect(levelsOf([0, 0])).toEqual([1, 1]);
  });

  it("rejects at every level what the definition rejects, by brute force over k (seed 17)", () => {
    const random = stream(17, "e-bh");
    for (let draw = 0; draw < 500; draw++) {
      const count = 1 + random.int(12);
      const eValues = Array.from({ length: count }, () => Math.exp(4 * random.normal()));
      const alpha = 0.01 + 0.5 * random.next();
      const sorted = [...eValues].sort((a, b) => b - a);
      const largest = sorted.findLastIndex((e, index) => ((index + 1) * e) / count >= 1 / alpha) + 1;
      const threshold = largest === 0 ? Number.POSITIVE_INFINITY : (sorted[largest - 1] ?? 0);
      expect(eBenjaminiHochberg(eValues, alpha)).toEqual(eValues.map((e) => e >= threshold));
    }
  });

  it.each([[[-1]], [[Number.NaN]]])("refuses %j", (eValues) => {
    expect(() => eBenjaminiHochberg(eValues, 0.05)).toThrow(/an e-value is at least 0/u);
  });

  it.each([0, 1, Number.NaN])("refuses level %d", (alpha) => {
    expect(() => eBenjaminiHochberg([1], alpha)).toThrow(/alpha is between 0 and 1/u);
  });

  /** A search at one step that stops as `examine` does: at 1/.0125, or after 60 blocks. */
  function finalEValue(treated: number, control: number, random: ReturnType<typeof stream>): number {
    let process = emptyEProcess;
    while (process.blocks < 60 && process.eValue < 80) {
      process = addBlock(process, random.chance(treated), random.chance(control));
    }
    return process.eValue;
  }

  it("keeps the false discovery rate of stopped e-processes in a mixture of nulls and effects (seed 23)", () => {
    const [rounds, runs, alpha] = [300, 40, 0.1];
    let [proportions, found, effects] = [0, 0, 0];
    for (let round = 0; round < rounds; round++) {
      const made = Array.from({ length: runs }, (_, run) => {
        const random = stream(23, "fdr", round, run);
        const isNull = run % 4 !== 0;
        const base = random.pick([0.1, 0.5, 0.8]);
        return { isNull, e: isNull ? finalEValue(base, base, random) : finalEValue(0.85, 0.1, random) };
      });
      const rejected = eBenjaminiHochberg(
        made.map(({ e }) => e),
        alpha,
      );
      const discoveries = made.filter((_, run) => rejected[run]);
      const falseOnes = discoveries.filter(({ isNull }) => isNull).length;
      proportions += discoveries.length === 0 ? 0 : falseOnes / discoveries.length;
      found += discoveries.length - falseOnes;
      effects += runs / 4;
    }
    // α · K₀/K = .075; and it is not by finding nothing.
    expect(proportions / rounds).toBeLessThanOrEqual(0.075);
    expect(found / effects).toBeGreaterThan(0.6);
  }, 120_000);

  it("rejects hardly anything where every hypothesis is null (seed 29)", () => {
    const rounds = 300;
    let any = 0;
    for (let round = 0; round < rounds; round++) {
      const random = stream(29, "null", round);
      const eValues = Array.from({ length: 30 }, () => finalEValue(0.4, 0.4, random));
      any += Number(eBenjaminiHochberg(eValues, 0.1).some(Boolean));
    }
    // Under the global null the FDR is the chance of any rejection; three standard errors of 300 rounds.
    expect(any / rounds).toBeLessThanOrEqual(0.1 + 3 * Math.sqrt((0.1 * 0.9) / rounds));
  }, 120_000);
});

describe("the e-value of a label", () => {
  const runs = { runs: 5, successes: 3 };
  const at = (step: number, eValue?: number, examination?: number) => ({
    step,
    treated: runs,
    control: runs,
    decision: "effect" as const,
    ...(eValue === undefined ? {} : { eValue }),
    ...(examination === undefined ? {} : { examination }),
  });

  it("is staked by the order of examination, 1/(j(j+1)), where the search chooses its steps", () => {
    const evidence = [at(3, 0.1, 2), at(4, 60, 1), at(6, 90, 3)];
    expect(labelEValue({ strategy: "bayes", step: 4, evidence }, 10)).toBe(30);
    expect(labelEValue({ strategy: "bayes", step: 6, evidence }, 10)).toBe(7.5);
  });

  it("is staked with 1/T where all steps are gone through, and 0 without a named or examined step", () => {
    expect(labelEValue({ strategy: "exhaustive", step: 2, evidence: [at(2, 50)] }, 10)).toBe(5);
    expect(labelEValue({ strategy: "bayes", evidence: [at(2, 50, 1)] }, 10)).toBe(0);
    expect(labelEValue({ strategy: "paper", step: 2, evidence: [at(2)] }, 10)).toBe(0);
  });

  it("counts runs without a label among the hypotheses", () => {
    const named = { id: "a", strategy: "bayes", step: 4, evidence: [at(4, 80, 1)] };
    const without = { id: "b", strategy: "bayes", evidence: [] };
    // Alone: 1/40 = .025. Beside a run without a label: 2/40 = .05.
    expect(labelLevels([named], () => 8).get("a")).toEqual({ eValue: 40, fdrLevel: 0.025 });
    expect(labelLevels([named, without], () => 8).get("a")).toEqual({ eValue: 40, fdrLevel: 0.05 });
    expect(labelLevels([named, without], () => 8).get("b")).toEqual({ eValue: 0, fdrLevel: 1 });
  });

  it("lets examinations go on for as long as a level needs", () => {
    expect(stoppingAlpha(0.05, undefined)).toBe(0.05);
    expect(stoppingAlpha(0.05, 0.1)).toBe(0.025);
    expect(stoppingAlpha(0.001, 0.1)).toBe(0.001);
  });
});
