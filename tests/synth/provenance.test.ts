import { describe, expect, it } from "vitest";
import { injectedSteps, naturalSteps, type Team } from "./injected-steps.ts";
import { areaUnderCurve, type SeenStep, separation } from "./provenance.ts";

const SEED = 31;
const N = 300;
const math: Team = { system: "planner-solver-verifier", set: "gsm8k", tasks: 60 };
const game: Team = { system: "blackjack-table", set: "blackjack", tasks: 60 };

const natural = new Map<Team, Promise<SeenStep[]>>();
/** Made once per team. */
function naturalOf(team: Team): Promise<SeenStep[]> {
  const known = natural.get(team) ?? naturalSteps(team, N, SEED);
  natural.set(team, known);
  return known;
}

describe(`a surface classifier on decisive steps of simulator runs (seed ${SEED}, n = ${N} each)`, () => {
  it.each([
    ["math", "any", math],
    ["math", "wrong-number", math],
    ["game", "any", game],
  ])(
    "in %s can hardly tell injected mistakes (%s) from natural ones",
    async (domain, operator, team) => {
      const [own, made] = [await naturalOf(team), await injectedSteps(team, operator, N, SEED)];
      expect([own.length, made.length]).toEqual([N, N]);
      const { auc, low, high } = separation(made, own, 1);
      console.log(`${domain}, ${operator}: AUC ${auc.toFixed(3)} (95% ${low.toFixed(3)} to ${high.toFixed(3)})`);
      expect(Math.abs(auc - 0.5)).toBeLessThanOrEqual(0.1);
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
