import { describe, expect, it } from "vitest";
import { exhaustive } from "../../synth/search/exhaustive.ts";
import { paper } from "../../synth/search/paper.ts";
import { searchStrategies, searchStrategyById } from "../../synth/search/registry.ts";
import { madeExperiment, SETTINGS, searchStrategyConformance } from "./search-strategy.conformance.ts";

for (const strategy of searchStrategies) searchStrategyConformance(strategy);

/** The slip regime: before t* a rerun usually succeeds, and a correction adds nothing; from t* on only the correction helps. */
const slip = (decisive: number) => ({
  treated: (step: number) => (step < decisive ? 0.65 : step === decisive ? 0.8 : 0.05),
  control: (step: number) => (step < decisive ? 0.65 : 0.05),
});

describe("a first flip without a control", () => {
  it("says nothing in the slip regime, where the control arm does", async () => {
    const decisive = 5;
    const right = { paper: 0, exhaustive: 0, named: 0 };
    for (let seed = 0; seed < 60; seed++) {
      const made = { seed, length: 8, ...slip(decisive) };
      right.paper += Number((await paper.search(madeExperiment(made), SETTINGS)).step === decisive);
      const result = await exhaustive.search(madeExperiment(made), SETTINGS);
      if (result.verdict !== "earliest-confirmed") continue;
      right.named++;
      right.exhaustive += Number(result.step === decisive);
    }
    expect(right.paper / 60).toBeLessThan(0.05);
    expect(right.named).toBeGreaterThan(0);
    expect(right.exhaustive / right.named).toBeGreaterThan(0.75);
  });
});

describe("exhaustive", () => {
  it("does not call a step the earliest while one before it is undecided", async () => {
    const made = { seed: 1, length: 6, treated: (s: number) => (s === 3 ? 1 : 0), control: () => 0, without: [1] };
    const result = await exhaustive.search(madeExperiment(made), SETTINGS);
    expect(result).toMatchObject({ verdict: "decisive-earlier-undecided", step: 3 });
  });
});

describe("the registry", () => {
  it("names the known strategies when asked for another", () => {
    expect(() => searchStrategyById("bogus")).toThrow(/known: exhaustive, paper, bayes/u);
  });
});
