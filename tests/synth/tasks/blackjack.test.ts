import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { stream } from "../../../src/random.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import { blackjack, sessionOf } from "../../../synth/tasks/blackjack/blackjack.ts";
import {
  CARDS,
  type Card,
  cardOf,
  handValue,
  isBlackjack,
  shuffledShoe,
} from "../../../synth/tasks/blackjack/cards.ts";
import { bestAction, dealerEnd, expectedValue, givenUp } from "../../../synth/tasks/blackjack/expected-value.ts";
import { createTable } from "../../../synth/tasks/blackjack/table.ts";

/** scripts/golden/blackjack.py: exact fractions, the dealer's draws enumerated forward. */
const golden = z
  .object({
    dealer: z.record(z.string(), z.record(z.string(), z.number())),
    dealerBeforePeek: z.record(z.string(), z.record(z.string(), z.number())),
    strategy: z.array(z.tuple([z.enum(["hard", "soft"]), z.number(), z.string()])),
    values: z.array(z.tuple([z.enum(["hard", "soft"]), z.number(), z.string(), z.number(), z.number(), z.number()])),
  })
  .parse(JSON.parse(readFileSync(new URL("golden/blackjack.json", import.meta.url), "utf8")));

const up = (name: string): Card => cardOf(name === "T" ? "10" : name) as Card;

describe("expected values", () => {
  it("ends the dealer's hand with the probabilities of an exact enumeration", () => {
    for (const [peeked, table] of [
      [true, golden.dealer],
      [false, golden.dealerBeforePeek],
    ] as const) {
      for (const [name, ends] of Object.entries(table)) {
        const mine = Object.fromEntries([...dealerEnd(up(name), peeked)].map(([end, p]) => [String(end), p]));
        expect(Object.keys(mine).sort()).toEqual(Object.keys(ends).sort());
        for (const [end, probability] of Object.entries(ends)) expect(mine[end]).toBeCloseTo(probability, 12);
      }
    }
  });

  it("values all 240 two-card situations as the enumeration does", () => {
    expect(golden.values).toHaveLength(240);
    for (const [kind, total, name, hit, stand, double] of golden.values) {
      const situation = { hand: { total, soft: kind === "soft" }, dealer: up(name), mayDouble: true };
      expect(expectedValue("hit", situation)).toBeCloseTo(hit, 12);
      expect(expectedValue("stand", situation)).toBeCloseTo(stand, 12);
      expect(expectedValue("double", situation)).toBeCloseTo(double, 12);
    }
  });

  it("plays the published strategy for four to eight decks, but for two soft doubles that an infinite deck just denies", () => {
    // The chart every casino hands out (dealer stands on soft 17, no pairs); columns are 2 to 10 and ace.
    const chart = {
      hard: [
        "hhhhhhhhhh",
        "hhhhhhhhhh",
        "hhhhhhhhhh",
        "hhhhhhhhhh",
        "hddddhhhhh",
        "ddddddddhh",
        "dddddddddh",
        "hhssshhhhh",
      ]
        .concat(Array(4).fill("ssssshhhhh"))
        .concat(Array(4).fill("ssssssssss")),
      soft: [
        "hhhddhhhhh",
        "hhhddhhhhh",
        "hhdddhhhhh",
        "hhdddhhhhh",
        "hddddhhhhh",
        "sddddsshhh",
        "ssssssssss",
        "ssssssssss",
      ],
    };
    const differing: string[] = [];
    for (const [kind, first] of [
      ["hard", 5],
      ["soft", 13],
    ] as const) {
      for (const [row, actions] of chart[kind].entries()) {
        for (const [column, letter] of [...actions].entries()) {
          const dealer = (column === 9 ? 1 : column + 2) as Card;
          const situation = { hand: { total: first + row, soft: kind === "soft" }, dealer, mayDouble: true };
          const best = bestAction(situation);
          if (best[0] === letter) continue;
          differing.push(`${kind} ${first + row} against ${dealer}`);
          const action = { h: "hit", s: "stand", d: "double" }[letter] as "hit" | "stand" | "double";
          expect(givenUp(action, situation)).toBeLessThan(0.01);
        }
      }
    }
    expect(differing).toEqual(["soft 13 against 5", "soft 15 against 4"]);
  });
});

describe("cards and table", () => {
  it("counts aces as 11 until that busts", () => {
    const value = (...cards: Card[]) => handValue(cards);
    expect(value(1, 10)).toEqual({ total: 21, soft: true });
    expect(value(1, 1)).toEqual({ total: 12, soft: true });
    expect(value(1, 6, 10)).toEqual({ total: 17, soft: false });
    expect(value(1, 1, 9)).toEqual({ total: 21, soft: true });
    expect(value(10, 6, 1, 1)).toEqual({ total: 18, soft: false });
    expect([isBlackjack([1, 10]), isBlackjack([1, 5, 5])]).toEqual([true, false]);
  });

  it("shuffles six whole decks", () => {
    const shoe = shuffledShoe(stream(1, "shoe"));
    expect(shoe).toHaveLength(312);
    for (const card of CARDS) expect(shoe.filter((one) => one === card)).toHaveLength(card === 10 ? 96 : 24);
  });

  it("deals player, dealer, player, dealer; the dealer draws to 17; the next hand goes on in the shoe", () => {
    // Hand 1: 10 6 against 7 (9 below); hit 5 = 21, dealer 7+9=16 draws 10. Hand 2: 8 3 against 6.
    const table = createTable([10, 7, 6, 9, 5, 10, 8, 6, 3, 10, 10, 2, 4, 9, 9], 2);
    expect(table.open).toMatchObject({ handNumber: 1, cards: [10, 6], dealer: 7, mayDouble: true });
    table.play("hit");
    expect(table.open).toMatchObject({ handNumber: 2, cards: [8, 3], dealer: 6 });
    table.play("double");
    expect(table.open).toBeUndefined();
    expect(table.decisions.map(({ action }) => action)).toEqual(["hit", "double"]);
  });

  it("passes over hands that a blackjack ends, and denies a double on three cards", () => {
    const table = createTable([1, 5, 10, 5, 2, 10, 3, 7, 4, 5], 2);
    expect(table.open).toMatchObject({ handNumber: 2, cards: [2, 3] });
    table.play("hit");
    expect(() => table.play("double")).toThrow(RangeError);
  });
});

describe("the task set", () => {
  const tasks = blackjack.load({ seed: 3, limit: 40 });
  const check = async (task: Task, answer: string | undefined) => blackjack.check(task, answer);

  it("makes sessions of 3 to 5 decisions whose reference play succeeds, the same for the same seed", async () => {
    for (const task of await tasks) {
      expect(task.referenceSolution?.match(/hit|stand|double/gu)?.length).toSatisfy((n: number) => n >= 3 && n <= 5);
      expect(await check(task, task.referenceSolution)).toMatchObject({ success: true });
    }
    expect(await blackjack.load({ seed: 3, limit: 40 })).toEqual(await tasks);
    expect(await blackjack.load({ seed: 4, limit: 40 })).not.toEqual(await tasks);
  });

  it("fails every other play, whether the hands are won or lost", async () => {
    for (const task of await tasks) {
      const { shoe, hands } = sessionOf(task);
      const first = createTable(shoe, hands).open;
      const best = first && bestAction(first);
      for (const action of ["hit", "stand", "double"] as const) {
        if (action === best) continue;
        const table = createTable(shoe, hands);
        table.play(action);
        for (let open = table.open; open !== undefined; open = table.open) table.play(bestAction(open));
        const record = table.decisions.map(({ handNumber, action: one }) => `hand ${handNumber}: ${one}`);
        const outcome = await check(task, joined(record));
        expect(outcome.success).toBe(false);
        expect(outcome.detail).toContain("gives up");
      }
    }
  });

  const joined = (parts: readonly string[]): string => {
    const hands = new Map<string, string[]>();
    for (const part of parts) {
      const [hand = "", action = ""] = part.split(": ");
      hands.set(hand, [...(hands.get(hand) ?? []), action]);
    }
    return [...hands].map(([hand, actions]) => `${hand}: ${actions.join(", ")}`).join("; ");
  };

  it.each([
    [undefined, "no answer"],
    ["", "was not played to its end"],
    ["I won!", "no record"],
    ["hand 1: win", "no record"],
    ["hand 1: split", "no record"],
    ["hand 9: stand", "nothing to decide in hand 9"],
    ["hand 1: hit, hit, hit, hit, hit, hit, hit, hit, hit, hit, hit, hit", "nothing to decide"],
    [`hand 1: ${"hit, ".repeat(1_000_000)}hit`, "no record"],
    ["hand 1: __proto__", "no record"],
  ])("judges the hostile answer %#", async (answer, detail) => {
    const [task] = await tasks;
    const outcome = await check(task as Task, answer);
    expect(outcome).toMatchObject({ success: false, detail: expect.stringContaining(detail) });
  });

  it("cannot be passed by stopping short, nor by playing on", async () => {
    for (const task of (await tasks).slice(0, 10)) {
      const solution = task.referenceSolution ?? "";
      expect(await check(task, solution.replace(/(?:; hand \d: |, )?\w+$/u, ""))).toMatchObject({ success: false });
      expect(await check(task, `${solution}, stand`)).toMatchObject({ success: false });
    }
  });

  it("says that a task without a shoe cannot be judged", async () => {
    const [task] = await tasks;
    await expect(async () =>
      check({ ...(task as Task), extra: { shoe: "A B C", hands: 2 } }, ""),
    ).rejects.toMatchObject({
      code: "CHECKER_FAILED",
    });
  });
});
