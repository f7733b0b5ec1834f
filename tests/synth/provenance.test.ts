import { describe, expect, it } from "vitest";
import { injectedSteps, naturalSteps, type Team } from "./injected-steps.ts";
import { areaUnderCurve, type SeenStep, separation } from "./provenance.ts";

const SEED = 31;
/** Of each kind; fewer where every rerun starts programs in a sandbox. */
const N = 300;
const N_CODE = 100;
/** The 95% interval of the AUC must reach down to here: what surely lies above would be a trace. */
const NEAR_CHANCE = 0.6;
const math: Team = { system: "planner-solver-verifier", set: "gsm8k", tasks: 60 };
const game: Team = { system: "blackjack-table", set: "blackjack", tasks: 60 };
const search: Team = { system: "searcher", set: "hotpotqa", tasks: 100 };
const code: Team = { system: "coder-tester", set: "mbppplus", tasks: 60 };

const natural = new Map<Team, Promise<SeenStep[]>>();
/** Made once per team. */
function naturalOf(team: Team, n = N): Promise<SeenStep[]> {
  const known = natural.get(team) ?? naturalSteps(team, n, SEED);
  natural.set(team, known);
  return known;
}

describe(`a surface classifier on decisive steps of simulator runs (seed ${SEED})`, () => {
  it.each([
    ["math", "any", math, N],
    ["math", "wrong-number", math, N],
    ["game", "any", game, N],
    ["search", "any", search, N],
    ["code", "any", code, N_CODE],
  ])(
    "in %s can hardly tell injected mistakes (%s) from natural ones",
    async (domain, operator, team, n) => {
      const [own, made] = [await naturalOf(team, n), await injectedSteps(team, operator, n, SEED)];
      expect([own.length, made.length]).toEqual([n, n]);
      const { auc, low, high } = separation(made, own, 1);
      console.log(
        `${domain}, ${operator}, n = ${n} each, seed ${SEED}: AUC ${auc.toFixed(3)} (95% ${low.toFixed(3)} to ${high.toFixed(3)})`,
      );
      expect(low).toBeLessThanOrEqual(NEAR_CHANCE);
      expect(high).toBeGreaterThanOrEqual(1 - NEAR_CHANCE);
    },
    900_000,
  );

  it.each<[string, (seen: SeenStep) => SeenStep]>([
    ["a wider space", (seen) => ({ ...seen, content: seen.content.replace(" ", "  ") })],
    ["a full stop more", (seen) => ({ ...seen, content: `${seen.content.replace(/\.$/u, "")}..` })],
    ["a place near the end", (seen) => ({ ...seen, step: Math.max(seen.step, seen.length - 2) })],
  ])(
    "would see %s",
    async (_, marked) => {
      const own = await naturalOf(game);
      const half = own.length / 2;
      expect(separation(own.slice(0, half).map(marked), own.slice(half), 1).auc).toBeGreaterThan(0.65);
    },
    900_000,
  );
});

describe("the area under the curve", () => {
  // Of 2 × 3 pairs: 3 > 1, 3 > 2, 3 > 2.5; 2 > 1, 2 = 2, 2 < 2.5: (3 + 1 + ½) / 6.
  it("counts pairs in order, ties half", () => expect(areaUnderCurve([3, 2], [1, 2, 2.5])).toBe(4.5 / 6));
});
