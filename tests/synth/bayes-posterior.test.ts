import { describe, expect, it } from "vitest";
import { posteriorOf, type Tally } from "../../synth/search/posterior.ts";
import { startingPrior } from "../../synth/search/prior.ts";
import { information, probes } from "../../synth/search/probe.ts";

/** (runs, successes) of treated and control at each step. */
type Outcomes = readonly (readonly [treated: readonly [number, number], control: readonly [number, number]])[];

const tallies = (outcomes: Outcomes): Tally[] =>
  outcomes.map(([treated, control]) => ({
    treated: { runs: treated[0], successes: treated[1] },
    control: { runs: control[0], successes: control[1] },
  }));

const untouched = (length: number): Outcomes =>
  Array.from(
    { length },
    () =>
      [
        [0, 0],
        [0, 0],
      ] as const,
  );

function expectClose(actual: readonly number[], expected: readonly number[], digits = 8): void {
  expect(actual.length).toBe(expected.length);
  actual.forEach((value, index) => {
    expect(value).toBeCloseTo(expected[index] ?? Number.NaN, digits);
  });
}

describe("the posterior over t*", () => {
  // By a Python program that enumerates every hypothesis, which corrections repair or harm among them.
  it("is that of an enumeration of all hypotheses (three steps)", () => {
    const outcomes = [[[0, 0], [3, 2]], [[2, 2], [2, 0]], [[1, 0], [1, 0]]] as const; // biome-ignore format: a table
    const { decisive, success } = posteriorOf(tallies(outcomes), [0.3, 0.3, 0.3, 0.1]);
    expectClose(decisive, [0.03892415091824456, 0.9180090107730214, 0.02588818118995871, 0.01717865711877524]);
    expectClose(success.treated[0] ?? [], [0.8342843662, 0.5439604473, 0.4885097103, 0.4841306581]);
    expectClose(success.treated[2] ?? [], [0.3637814011, 0.1594080926, 0.6989845886, 0.1895335622]);
    expectClose(success.control[1] ?? [], [0.2250518039, 0.0765529699, 0.508252211, 0.4526354204]);
  });

  it("is that of an enumeration of all hypotheses (four steps, uneven prior)", () => {
    const outcomes = [[[1, 0], [1, 0]], [[1, 1], [0, 0]], [[3, 1], [2, 0]], [[0, 0], [0, 0]]] as const; // biome-ignore format: a table
    const { decisive, success } = posteriorOf(tallies(outcomes), [0.1, 0.2, 0.3, 0.35, 0.05]);
    expectClose(
      decisive,
      [0.061599586133166476, 0.38488062194961703, 0.18429625692980292, 0.32773577243784907, 0.04148776254956448],
    );
    expectClose(success.treated[2] ?? [], [0.4822033032, 0.3582123437, 0.6543049498, 0.307514412, 0.2466995067]);
    expectClose(success.control[3] ?? [], [0.1130390234, 0.1149148826, 0.0900675162, 0.1076172308, 0.2025634825]);
  });

  it("is the prior before any rerun", () => {
    const prior = [0.1, 0.2, 0.3, 0.35, 0.05];
    expectClose(posteriorOf(tallies(untouched(4)), prior).decisive, prior);
  });

  it("leaves what the prior rules out ruled out, however well it would fit", () => {
    const outcomes = [[[200, 0], [200, 0]], [[200, 196], [200, 0]], [[0, 0], [0, 0]]] as const; // biome-ignore format: a table
    const { decisive } = posteriorOf(tallies(outcomes), [0.475, 0, 0.475, 0.05]);
    expect(decisive[1]).toBe(0);
    expect(decisive.reduce((sum, p) => sum + p, 0)).toBeCloseTo(1, 12);
  });
});

describe("the information of a rerun", () => {
  it("is ln 2 where the outcome tells two steps apart, and nothing where it is the same under all", () => {
    expect(information([0.5, 0.5], [0, 1])).toBeCloseTo(Math.LN2, 12);
    expect(information([0.5, 0.5], [0.4, 0.4])).toBe(0);
    expect(information([0, 1], [0, 1])).toBe(0);
  });

  it("is the mutual information of outcome and t*", () => {
    // Python: H(Σ p s) − Σ p H(s).
    expect(information([0.5, 0.3, 0.2], [0.9, 0.2, 0.5])).toBeCloseTo(0.21745643698263994, 12);
  });

  it("is offered for both arms at every step, but control at the last and treated without a correction", () => {
    const posterior = posteriorOf(tallies(untouched(3)), startingPrior(3));
    const calls = [0, undefined, 1];
    const offered = probes(posterior, (step) => calls[step]);
    expect(offered.map(({ arm, step, cost }) => [arm, step, cost])).toEqual([
      ["control", 0, 2],
      ["treated", 0, 2],
      ["control", 1, 1],
      ["treated", 2, 1],
    ]);
  });

  it("costs something even without a live call", () => {
    const posterior = posteriorOf(tallies(untouched(1)), startingPrior(1));
    expect(probes(posterior, () => 0)[0]?.cost).toBeGreaterThan(0);
  });
});

describe("the prior of a search", () => {
  it("is uniform unless something is believed, and always sums to 1", () => {
    expectClose(startingPrior(4), [0.2375, 0.2375, 0.2375, 0.2375, 0.05]);
    expectClose([startingPrior(3, [7, 0, 1]).reduce((sum, p) => sum + p, 0)], [1]);
  });

  it("leaves every step a share whatever is believed", () => {
    const [, second, third] = startingPrior(4, [1, 0, 0, 0]);
    expect(second).toBeGreaterThan(0.1);
    expect(third).toBe(second);
  });

  it.each([[[1, 1]], [[0, 0, 0]], [[1, -1, 1]], [[1, Number.NaN, 1]], [[1, Number.POSITIVE_INFINITY, 1]]])(
    "refuses weights that do not fit a run of three steps: %j",
    (weights) => {
      expect(() => startingPrior(3, weights)).toThrow(/3 weights/u);
    },
  );
});
