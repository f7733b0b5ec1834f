import { describe, expect, it } from "vitest";
import { stream } from "../../src/random.ts";
import { addBlock, type EProcess, emptyEProcess, probabilityOfEffect } from "../../synth/search/e-process.ts";

const after = (outcomes: readonly (readonly [number, number])[]): EProcess =>
  outcomes.reduce((process, [treated, control]) => addBlock(process, treated === 1, control === 1), emptyEProcess);

describe("the e-process of two Bernoulli arms", () => {
  // Computed with exact fractions in Python from the formula of the paper.
  it.each([
    [
      [
        [1, 0],
        [1, 0],
        [1, 0],
      ],
      10.277681660899654,
    ],
    [
      [
        [1, 0],
        [1, 0],
        [1, 0],
        [1, 0],
      ],
      36.8239895222795,
    ],
    [
      [
        [1, 0],
        [0, 1],
        [1, 0],
        [1, 1],
        [1, 0],
      ],
      0.09833014058580286,
    ],
    [
      [
        [0, 1],
        [0, 1],
        [0, 1],
        [0, 1],
        [0, 1],
      ],
      1,
    ],
    [
      [
        [1, 1],
        [1, 1],
        [1, 1],
      ],
      1,
    ],
  ] as const)("has the value of %j", (outcomes, expected) => {
    expect(after(outcomes).eValue).toBeCloseTo(expected, 12);
  });

  it.each([0.1, 0.5, 0.63, 0.9])("passes 20 in at most 5%% of null runs, whenever one looks (θ = %s)", (theta) => {
    const runs = 2000;
    let crossed = 0;
    for (let run = 0; run < runs; run++) {
      const random = stream("e-process null", theta, run);
      let process = emptyEProcess;
      for (let block = 0; block < 200 && process.eValue < 20; block++) {
        process = addBlock(process, random.chance(theta), random.chance(theta));
      }
      crossed += Number(process.eValue >= 20);
    }
    // Ville: P ≤ .05; three standard errors of slack for 2,000 seeded runs.
    expect(crossed / runs).toBeLessThanOrEqual(0.05 + 3 * Math.sqrt((0.05 * 0.95) / runs));
  });

  it("finds an effect of .9 against .1 within a dozen blocks, nearly always", () => {
    let blocks = 0;
    for (let run = 0; run < 500; run++) {
      const random = stream("e-process power", run);
      let process = emptyEProcess;
      while (process.eValue < 20 && process.blocks < 50)
        process = addBlock(process, random.chance(0.9), random.chance(0.1));
      expect(process.eValue).toBeGreaterThanOrEqual(20);
      blocks += process.blocks;
    }
    expect(blocks / 500).toBeLessThan(12);
  });
});

describe("the probability of an effect worth finding", () => {
  // Monte Carlo with numpy, 4 million draws each; standard error below 3e-4.
  it.each([
    [10, 5, 5, 0.158118],
    [10, 9, 2, 0.983796],
    [30, 20, 20, 0.043732],
    [0, 0, 0, 0.319701],
  ])("after %i blocks with %i and %i successes", (blocks, treated, control, expected) => {
    expect(probabilityOfEffect({ blocks, treated, control, eValue: 1 }, 0.2)).toBeCloseTo(expected, 2);
  });
});
