import { describe, expect, it } from "vitest";
import { stream } from "../../src/random.ts";
import type { ReplayExperiment, SearchSettings, SearchStrategy } from "../../synth/search/strategy.ts";

export const SETTINGS: SearchSettings = { alpha: 0.05, maxBlocks: 100, minEffect: 0.2, futility: 0.05 };

/** A failed run whose arms succeed with given probabilities; reruns are named, so the order of asking changes nothing. */
export function madeExperiment(made: {
  readonly seed: number;
  readonly length: number;
  readonly treated: (step: number) => number;
  readonly control: (step: number) => number;
  readonly without?: readonly number[];
}): ReplayExperiment & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    length: made.length,
    hasCorrection: async (step) => !(made.without ?? []).includes(step),
    async rerun(arm, step, replicate) {
      asked.push(`${arm} ${step} ${replicate}`);
      return stream(made.seed, arm, step, replicate).chance(made[arm](step));
    },
    get liveCalls() {
      return asked.length;
    },
    asked,
  };
}

/** A decisive step without noise: hopeless from it on, hopeless before it too unless corrected there. */
const needle = (decisive: number) => ({
  treated: (step: number) => (step === decisive ? 1 : 0),
  control: () => 0,
});

/** What every search strategy keeps to. */
export function searchStrategyConformance(strategy: SearchStrategy): void {
  describe(`search strategy ${strategy.id}`, () => {
    it.each([0, 3, 7])("names step %i where only its correction helps", async (decisive) => {
      const result = await strategy.search(madeExperiment({ seed: 1, length: 8, ...needle(decisive) }), SETTINGS);
      expect(result.step).toBe(decisive);
    });

    it("names no step where nothing helps", async () => {
      const never = { treated: () => 0, control: () => 0 };
      const result = await strategy.search(madeExperiment({ seed: 1, length: 6, ...never }), SETTINGS);
      expect(result).toMatchObject({ verdict: "undecided" });
      expect(result.step).toBeUndefined();
    });

    it("gives the same result for the same experiment", async () => {
      const noisy = {
        treated: (step: number) => (step >= 3 ? 0.8 : 0.4),
        control: (step: number) => (step < 3 ? 0.4 : 0.05),
      };
      const run = () => strategy.search(madeExperiment({ seed: 11, length: 8, ...noisy }), SETTINGS);
      expect(await run()).toEqual(await run());
    });

    it("never asks for the same rerun twice, nor for a treated one without a correction", async () => {
      const experiment = madeExperiment({ seed: 2, length: 6, ...needle(4), without: [1] });
      await strategy.search(experiment, SETTINGS);
      expect(new Set(experiment.asked).size).toBe(experiment.asked.length);
      expect(experiment.asked.some((name) => name.startsWith("treated 1 "))).toBe(false);
    });

    it("has evidence for every step up to the one it names", async () => {
      const { evidence } = await strategy.search(madeExperiment({ seed: 3, length: 8, ...needle(5) }), SETTINGS);
      const steps = evidence.map(({ step }) => step);
      expect(steps.slice(0, 6)).toEqual([0, 1, 2, 3, 4, 5]);
      expect(steps).toEqual([...new Set(steps)].sort((a, b) => a - b));
    });

    it.each([
      ["right", [0, 0, 0, 0, 0, 9, 0, 0]],
      ["wrong", [0, 9, 0, 0, 0, 0, 0, 0]],
    ])("names the same step with a prior that is %s", async (_, prior) => {
      const result = await strategy.search(madeExperiment({ seed: 1, length: 8, ...needle(5) }), SETTINGS, prior);
      expect(result.step).toBe(5);
    });

    it.each([0, 3, 20])("stops where its live calls are spent: %i, and a block at most", async (maxLiveCalls) => {
      const made = { seed: 5, length: 8, treated: () => 0.03, control: () => 0.03 };
      const experiment = madeExperiment(made);
      const result = await strategy.search(experiment, { ...SETTINGS, maxLiveCalls });
      expect(result).toMatchObject({ verdict: "undecided" });
      expect(experiment.asked.length).toBeLessThanOrEqual(maxLiveCalls + 1);
    });

    it("passes errors of a rerun on", async () => {
      const broken: ReplayExperiment = {
        ...madeExperiment({ seed: 1, length: 4, ...needle(2) }),
        rerun: () => Promise.reject(new Error("the system crashed")),
      };
      await expect(strategy.search(broken, SETTINGS)).rejects.toThrow("the system crashed");
    });
  });
}
