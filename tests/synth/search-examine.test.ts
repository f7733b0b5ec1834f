import { describe, expect, it } from "vitest";
import { examine } from "../../synth/search/examine.ts";
import { madeExperiment, SETTINGS } from "./search-strategy.conformance.ts";

const at = (rate: number) => () => rate;

describe("the examination of one step", () => {
  it.each([0.05, 0.4, 0.7, 0.95])(
    "claims an effect in at most α of the steps without one (success rate %s)",
    async (rate) => {
      const runs = 300;
      let claimed = 0;
      for (let seed = 0; seed < runs; seed++) {
        const made = madeExperiment({ seed, length: 2, treated: at(rate), control: at(rate) });
        claimed += Number((await examine(made, 0, SETTINGS)).decision === "effect");
      }
      // Three standard errors of slack for 300 seeded runs (seeds 0–299).
      expect(claimed / runs).toBeLessThanOrEqual(SETTINGS.alpha + 3 * Math.sqrt((0.05 * 0.95) / runs));
    },
  );

  it("uses the replicates it is told to begin with", async () => {
    const made = madeExperiment({ seed: 1, length: 2, treated: at(1), control: at(0) });
    const found = await examine(made, 0, SETTINGS, { treated: 7, control: 3 });
    expect(found).toMatchObject({
      decision: "effect",
      treated: { runs: 4, successes: 4 },
      control: { runs: 4, successes: 0 },
    });
    expect(made.asked.slice(0, 4)).toEqual(["treated 0 7", "control 0 3", "treated 0 8", "control 0 4"]);
  });

  it("is undecided when the live calls are spent", async () => {
    const made = madeExperiment({ seed: 1, length: 2, treated: at(1), control: at(0) });
    const found = await examine(made, 0, { ...SETTINGS, maxLiveCalls: 3 });
    expect(found).toMatchObject({ decision: "undecided", treated: { runs: 2 } });
  });
});
