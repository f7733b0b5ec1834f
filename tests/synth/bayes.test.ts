import { describe, expect, it } from "vitest";
import { stream } from "../../src/random.ts";
import { bayes } from "../../synth/search/bayes.ts";
import { exhaustive } from "../../synth/search/exhaustive.ts";
import type { SearchResult } from "../../synth/search/strategy.ts";
import { madeExperiment, SETTINGS } from "./search-strategy.conformance.ts";

/** Slip: before t* a rerun mostly succeeds. Systematic: the error recurs, and corrections of every second later step repair. */
const regimes = {
  slip: (decisive: number) => ({
    treated: (step: number) => (step < decisive ? 0.65 : step === decisive ? 0.93 : 0.02),
    control: (step: number) => (step < decisive ? 0.65 : 0.02),
  }),
  systematic: (decisive: number) => ({
    treated: (step: number) => (step < decisive ? 0.1 : (step - decisive) % 2 === 0 ? 0.93 : 0.02),
    control: (step: number) => (step < decisive ? 0.1 : 0.02),
  }),
};

interface Tried {
  readonly decisive: number;
  readonly length: number;
  readonly result: SearchResult;
  readonly reruns: number;
}

async function tries(
  regime: keyof typeof regimes,
  length: number,
  runs: number,
  search: (made: ReturnType<typeof madeExperiment>, decisive: number) => Promise<SearchResult>,
): Promise<Tried[]> {
  const all: Tried[] = [];
  for (let seed = 0; seed < runs; seed++) {
    const decisive = stream("bayes.test", regime, seed).int(length);
    const made = madeExperiment({ seed, length, ...regimes[regime](decisive) });
    const result = await search(made, decisive);
    all.push({ decisive, length, result, reruns: made.asked.length });
  }
  return all;
}

const labelled = (all: readonly Tried[]) => all.filter(({ result }) => result.verdict === "earliest-confirmed");
const right = (all: readonly Tried[]) => labelled(all).filter(({ result, decisive }) => result.step === decisive);

describe.each(["slip", "systematic"] as const)("bayes in the %s regime", (regime) => {
  it("names the right step of most runs", async () => {
    const all = await tries(regime, 10, 25, (made) => bayes.search(made, SETTINGS));
    expect(labelled(all).length).toBeGreaterThanOrEqual(20);
    expect(right(all).length / labelled(all).length).toBeGreaterThan(0.9);
  });

  it("is not led astray by a prior that is sure of another step", async () => {
    const all = await tries(regime, 10, 25, (made, decisive) => {
      const prior = Array.from({ length: 10 }, (_, step) => Number(step === (decisive + 3) % 10));
      return bayes.search(made, SETTINGS, prior);
    });
    expect(labelled(all).length).toBeGreaterThanOrEqual(20);
    expect(right(all).length / labelled(all).length).toBeGreaterThan(0.9);
  });

  it("needs fewer reruns than trying every step, and fewer still if told where to look", async () => {
    const reruns = (all: readonly Tried[]): number => all.reduce((sum, one) => sum + one.reruns, 0);
    const blind = reruns(await tries(regime, 10, 20, (made) => bayes.search(made, SETTINGS)));
    const told = reruns(
      await tries(regime, 10, 20, (made, decisive) => {
        const prior = Array.from({ length: 10 }, (_, step) => Number(step === decisive));
        return bayes.search(made, SETTINGS, prior);
      }),
    );
    const all = reruns(await tries(regime, 10, 20, (made) => exhaustive.search(made, SETTINGS)));
    expect(blind).toBeLessThan(all / 2);
    expect(told).toBeLessThan(blind);
  });
});

describe("bayes", () => {
  it.each([
    ["hopeless", () => 0.02],
    ["even odds", () => 0.5],
    ["a log that breaks where no correction helps", (step: number) => (step < 4 ? 0.7 : 0.02)],
  ])("labels hardly a run in which no correction has an effect: %s", async (_, rate) => {
    const runs = 40;
    let labels = 0;
    for (let seed = 0; seed < runs; seed++) {
      const result = await bayes.search(madeExperiment({ seed, length: 8, treated: rate, control: rate }), SETTINGS);
      labels += Number(result.verdict === "earliest-confirmed");
    }
    // α = .05 and three standard errors of 40 seeded runs (seeds 0–39).
    expect(labels / runs).toBeLessThanOrEqual(0.05 + 3 * Math.sqrt((0.05 * 0.95) / runs));
  });

  it("confirms a step with reruns it has not seen before, and refutes the one before with such", async () => {
    const made = madeExperiment({ seed: 4, length: 8, ...regimes.slip(5) });
    const { verdict, step, evidence } = await bayes.search(made, SETTINGS);
    expect([verdict, step]).toEqual(["earliest-confirmed", 5]);
    expect(evidence[5]).toMatchObject({ decision: "effect" });
    expect(evidence[5]?.eValue).toBeGreaterThanOrEqual(1 / SETTINGS.alpha);
    expect(evidence[4]).toMatchObject({ decision: "no effect" });
    const rerunsOf = (arm: string, at: number) => made.asked.filter((name) => name.startsWith(`${arm} ${at} `));
    // The evidence of a step counts all its reruns, numbered without gaps.
    for (const { step: at, treated, control } of evidence) {
      expect(rerunsOf("treated", at)).toEqual(Array.from({ length: treated.runs }, (_, n) => `treated ${at} ${n}`));
      expect(rerunsOf("control", at)).toEqual(Array.from({ length: control.runs }, (_, n) => `control ${at} ${n}`));
    }
  });

  it("does not call a step the earliest where the one before it has no correction", async () => {
    const made = madeExperiment({ seed: 1, length: 8, ...regimes.slip(5), without: [4] });
    expect(await bayes.search(made, SETTINGS)).toMatchObject({ verdict: "decisive-earlier-undecided", step: 5 });
  });

  it("names nothing where the step at which the log breaks has no correction", async () => {
    const made = madeExperiment({ seed: 1, length: 8, ...regimes.slip(5), without: [5] });
    const result = await bayes.search(made, SETTINGS);
    expect(result.verdict).toBe("undecided");
    expect(result.step).toBeUndefined();
    const atBreak = result.evidence.find(({ step }) => step === 5);
    expect(atBreak).toMatchObject({ decision: "no correction", treated: { runs: 0 } });
  });

  it("goes back where the step before turns out to have an effect too", async () => {
    // The prior insists on a later step whose correction repairs; the step before repairs as well.
    const needle = { treated: (step: number) => (step >= 2 ? 0.95 : 0.02), control: () => 0.02 };
    const made = madeExperiment({ seed: 3, length: 6, ...needle });
    const { verdict, step } = await bayes.search(made, SETTINGS, [0, 0, 0, 0, 1, 0]);
    expect([verdict, step]).toEqual(["earliest-confirmed", 2]);
  });

  it("handles a run of one step, with and without a correction", async () => {
    const one = { seed: 1, length: 1, treated: () => 1, control: () => 0 };
    expect(await bayes.search(madeExperiment(one), SETTINGS)).toMatchObject({ verdict: "earliest-confirmed", step: 0 });
    const without = madeExperiment({ ...one, without: [0] });
    expect(await bayes.search(without, SETTINGS)).toMatchObject({ verdict: "undecided" });
  });
});
