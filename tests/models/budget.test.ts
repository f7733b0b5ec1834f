import { describe, expect, test } from "vitest";
import { RootstepError } from "../../src/errors.ts";
import { createBudget, promptTokensAtMost, withBudget } from "../../src/models/budget.ts";
import type { ChatResponse } from "../../src/models/chat-model.ts";
import { scriptedModel } from "../../src/models/scripted.ts";
import { settled } from "./manual-clock.ts";

const ask = { messages: [{ role: "user", content: "hello" }], maxTokens: 100 } as const;
const usage = { promptTokens: 10, completionTokens: 20 };
const later = async (): Promise<Partial<ChatResponse>> => {
  await settled();
  return { content: "x", usage };
};
const codes = (results: PromiseSettledResult<unknown>[]) =>
  results.map((result) => (result.status === "fulfilled" ? "ok" : (result.reason as RootstepError).code));
const count = <T>(items: readonly T[], item: T) => items.filter((other) => other === item).length;

describe("cap on calls", () => {
  test("50 calls at once never pass a cap of 7", async () => {
    const inner = scriptedModel([{ answer: later }]);
    const budget = createBudget({ maxCalls: 7 });
    const model = withBudget(inner, budget);
    const results = codes(await Promise.allSettled(Array.from({ length: 50 }, () => model.complete(ask))));
    expect(count(results, "ok")).toBe(7);
    expect(count(results, "BUDGET_REACHED")).toBe(43);
    expect(inner.requests).toHaveLength(7);
    expect(budget.spent()).toEqual({
      calls: 7,
      promptTokens: 70,
      completionTokens: 140,
      cost: undefined,
      unmeteredCalls: 0,
    });
  });

  test("is shared by every model of the budget, and failures count", async () => {
    const budget = createBudget({ maxCalls: 2 });
    const failing = withBudget(scriptedModel([new RootstepError("MODEL_SERVER_ERROR", { what: "500" })]), budget);
    const fine = withBudget(scriptedModel(["a", "b"]), budget);
    await expect(failing.complete(ask)).rejects.toMatchObject({ code: "MODEL_SERVER_ERROR" });
    await fine.complete(ask);
    await expect(fine.complete(ask)).rejects.toMatchObject({ code: "BUDGET_REACHED", exit: 3 });
  });
});

describe("cap on cost", () => {
  const prices = { prompt: 1_000_000, completion: 2_000_000 }; // 1 and 2 a token
  const actual = 10 * 1 + 20 * 2;
  const atMost = promptTokensAtMost(ask) + 100 * 2;

  test("50 calls at once never pass it, and those that only wait for others' estimates are made", async () => {
    const maxCost = atMost + 9 * actual; // after nine calls have settled, one more still fits
    const inner = scriptedModel([{ answer: later }]);
    const budget = createBudget({ maxCost, prices });
    const model = withBudget(inner, budget);
    const results = codes(await Promise.allSettled(Array.from({ length: 50 }, () => model.complete(ask))));
    expect(count(results, "ok")).toBe(10);
    expect(count(results, "BUDGET_REACHED")).toBe(40);
    expect(budget.spent()).toMatchObject({ calls: 10, cost: 10 * actual });
  });

  test("spent and set aside together never exceed it, even where every call takes all it may", async () => {
    const full = { content: "x", usage: { promptTokens: promptTokensAtMost(ask), completionTokens: 100 } };
    const budget = createBudget({ maxCost: 3.5 * atMost, prices });
    const model = withBudget(scriptedModel([{ answer: () => settled().then(() => full) }]), budget);
    await Promise.allSettled(Array.from({ length: 50 }, () => model.complete(ask)));
    expect(budget.spent()).toMatchObject({ calls: 3, cost: 3 * atMost });
  });

  test("without a usage the estimate is charged; a refusal costs nothing; a broken answer costs the estimate", async () => {
    const cases: [ChatResponse["content"] | Error, number, number][] = [
      ["no usage told", atMost, 1],
      [new RootstepError("MODEL_RATE_LIMITED", { what: "429" }), 0, 0],
      [new RootstepError("MODEL_STREAM_CUT", { what: "cut" }), atMost, 1],
      [new RootstepError("INTERRUPTED", { what: "stop" }), atMost, 1],
    ];
    for (const [answer, cost, unmeteredCalls] of cases) {
      const budget = createBudget({ maxCost: 1e9, prices });
      await withBudget(scriptedModel([answer]), budget)
        .complete(ask)
        .catch(() => {});
      expect(budget.spent()).toEqual({ calls: 1, promptTokens: 0, completionTokens: 0, cost, unmeteredCalls });
    }
  });

  test("a call that could pass it alone is not made", async () => {
    const inner = scriptedModel(["never"]);
    const budget = createBudget({ maxCost: atMost - 1, prices });
    await expect(withBudget(inner, budget).complete(ask)).rejects.toMatchObject({ code: "BUDGET_REACHED" });
    expect(inner.requests).toEqual([]);
    expect(budget.spent()).toMatchObject({ calls: 0, cost: 0 });
  });

  test("goes on from what an earlier run has spent", async () => {
    const budget = createBudget({ maxCost: 2 * atMost, prices, already: { calls: 4, cost: 1.5 * atMost } });
    await expect(withBudget(scriptedModel(["x"]), budget).complete(ask)).rejects.toMatchObject({
      code: "BUDGET_REACHED",
    });
    expect(budget.spent().calls).toBe(4);
  });

  test("needs a price", () => {
    expect(() => withBudget(scriptedModel([]), createBudget({ maxCost: 1 }))).toThrow(/no price is known for scripted/);
    expect(() => withBudget(scriptedModel([]), createBudget({ maxCost: 1 }), prices)).not.toThrow();
  });

  test("a call that waits for others' estimates is interrupted", async () => {
    const budget = createBudget({ maxCost: 1.5 * atMost, prices });
    const model = withBudget(scriptedModel([{ answer: () => new Promise<never>(() => {}) }]), budget);
    void model.complete(ask);
    const controller = new AbortController();
    const second = model.complete(ask, { signal: controller.signal });
    await settled();
    controller.abort();
    await expect(second).rejects.toMatchObject({ code: "INTERRUPTED" });
    expect(budget.spent().calls).toBe(1);
  });
});

test("no tokenizer of bytes makes more prompt tokens than the estimate", () => {
  const content = "🙂".repeat(100); // four bytes each
  expect(promptTokensAtMost({ messages: [{ role: "user", content }] })).toBeGreaterThan(400);
});
