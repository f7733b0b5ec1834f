import { describe, expect, it } from "vitest";
import { comparePaired } from "../../src/evaluation/compare.ts";
import { type Prediction, sortPredictions } from "../../src/evaluation/prediction.ts";
import { scorePredictions } from "../../src/evaluation/score.ts";
import { officialCompat, strict, withinSteps } from "../../src/evaluation/scorers.ts";
import { run } from "./items.ts";

function prediction(
  itemId: string,
  agent: string | null,
  step: number | null,
  over: Partial<Prediction> = {},
): Prediction {
  return {
    itemId,
    epoch: 0,
    method: "m",
    agent,
    step,
    evidence: [],
    parsePath: "json",
    calls: 1,
    latencyMs: 500,
    ...over,
  };
}

describe("scorers", () => {
  const gold = { agent: "Orchestrator", step: 1, source: "human" as const };

  it.each([
    ["Orchestrator", true, true],
    ["Orchestrator (-> WebSurfer)", true, true],
    ["  ORCHESTRATOR ", true, false],
    ["Ｏrchestrator", true, false],
    ["MagenticOrchestrator", false, true],
    ["Orchestra", false, false],
    [null, false, false],
  ])("agent %s: strict %s, official %s", (agent, isStrict, isOfficial) => {
    expect(strict.agent({ agent, step: null }, gold)).toBe(isStrict);
    expect(officialCompat.agent({ agent, step: null }, gold)).toBe(isOfficial);
  });

  it.each([
    [1, true, true],
    [10, false, true],
    [19, false, true],
    [21, false, true],
    [2, false, false],
    [null, false, false],
  ])("step %s for label 1: strict %s, official %s", (step, isStrict, isOfficial) => {
    expect(strict.step({ agent: null, step }, gold)).toBe(isStrict);
    expect(officialCompat.step({ agent: null, step }, gold)).toBe(isOfficial);
  });

  it("does not take a label for a part of it the other way round", () => {
    expect(officialCompat.step({ agent: null, step: 1 }, { ...gold, step: 12 })).toBe(false);
  });

  it("keeps hyphens as parts of names", () => {
    expect(strict.agent({ agent: "Blu Ray_Expert", step: 0 }, { ...gold, agent: "Blu-Ray_Expert" })).toBe(false);
  });

  it("counts steps within a distance", () => {
    expect([0, 1, 2, 3].map((tolerance) => withinSteps({ agent: null, step: 3 }, gold, tolerance))).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect(withinSteps({ agent: null, step: null }, gold, 3)).toBe(false);
  });
});

describe("scorePredictions", () => {
  const agents = ["A", "B", "A", "B", "A", "B", "A"];
  const items = [run("i0", agents, 0), run("i1", agents, 1), run("i2", agents, 5), run("i3", agents, 6)];
  const predictions = [
    prediction("i0", "A", 0, { usage: { promptTokens: 100, completionTokens: 10 } }),
    prediction("i1", "B", 2),
    prediction("i2", "A", null, { parsePath: "labelled-lines", parseFailure: "the answer names no step" }),
    prediction("i3", null, null, {
      parsePath: "none",
      calls: 1,
      error: { code: "MODEL_TIMEOUT", message: "no answer" },
    }),
  ];

  it("counts each column over all predictions, failures as wrong", () => {
    const scores = scorePredictions(items, predictions);
    expect(scores.strict.agent).toMatchObject({ hits: 2, n: 4, value: 0.5, clustered: null });
    expect(scores.strict.step).toMatchObject({ hits: 1, n: 4 });
    expect(scores.strict.both).toMatchObject({ hits: 1, n: 4 });
    expect(scores.strict.within1).toMatchObject({ hits: 2, n: 4 });
    expect(scores.strict.lateStep).toMatchObject({ hits: 0, n: 2 });
    expect(scores.strict.lateAgent).toMatchObject({ hits: 0, n: 2 });
    expect(scores.parseFailures).toMatchObject({ hits: 1, n: 4 });
    expect(scores.noStepNamed).toMatchObject({ hits: 0, n: 4 });
    expect(scores.errors).toEqual({ MODEL_TIMEOUT: 1 });
    expect(scores.parseFailureReasons).toEqual({ "the answer names no step": 1 });
    expect(scores.parsePaths).toEqual({ json: 2, "labelled-lines": 1, none: 1 });
    expect(scores.cost).toEqual({
      predictions: 4,
      calls: 4,
      promptTokens: 100,
      completionTokens: 10,
      withoutUsage: 3,
      money: null,
      seconds: 2,
    });
    // statsmodels: proportion_confint(2, 4, method='wilson')
    expect(scores.strict.agent.wilson!.low).toBeCloseTo(0.15003898915214947, 9);
    expect(scores.strict.agent.wilson!.high).toBeCloseTo(0.8499610108478506, 9);
  });

  it("counts answers that were read and named no step by themselves: no hit, no parse failure", () => {
    const none = predictions.map((one) => ({ ...prediction(one.itemId, null, null), noStepNamed: true as const }));
    const scores = scorePredictions(items, [...none.slice(0, 3), ...predictions.slice(3)]);
    expect(scores.noStepNamed).toMatchObject({ hits: 3, n: 4, value: 0.75 });
    expect(scores.parseFailures).toMatchObject({ hits: 0, n: 4 });
    expect(scores.strict.step).toMatchObject({ hits: 0, n: 4 });
    expect(scores.parseFailureReasons).toEqual({});
    const epochs = [0, 1].flatMap((epoch) => none.map((one) => ({ ...one, epoch })));
    expect(scorePredictions(items, epochs, { resamples: 50 }).noStepNamed.clustered).toEqual({ low: 1, high: 1 });
  });

  it("leaves out what is not there and says how much that is", () => {
    const scores = scorePredictions(items, [...predictions.slice(0, 2), prediction("stranger", "A", 0)]);
    expect(scores).toMatchObject({ items: 2, missing: 2, planned: 4, unknown: { count: 1, ids: ["stranger"] } });
    expect(scores.strict.agent.n).toBe(2);
    expect(scores.cost.predictions).toBe(2);
  });

  it("knows from the run how many epochs there are: a partial second epoch is missing, a third one unknown", () => {
    const second = prediction("i0", "A", 0, { epoch: 1 });
    const third = prediction("i0", "A", 0, { epoch: 2 });
    const scores = scorePredictions(items, [...predictions, second, third], { epochs: 2, resamples: 100 });
    expect(scores).toMatchObject({ epochs: 2, planned: 8, missing: 3, unknown: { count: 1, ids: ["i0"] } });
    expect(scorePredictions([items[0]!], [third], { epochs: 1 })).toMatchObject({ missing: 1, unknown: { count: 1 } });
  });

  it("sums cost per group and in all, money by the prices", () => {
    const halves = items.map((item, i) => ({ ...item, subset: i < 2 ? "first" : "second" }));
    const scores = scorePredictions(halves, predictions, { prices: { prompt: 3, completion: 20 } });
    expect(scores.byGroup.first!.cost).toMatchObject({ calls: 2, promptTokens: 100, withoutUsage: 1, seconds: 1 });
    expect(scores.byGroup.first!.cost.money).toBeCloseTo((100 * 3 + 10 * 20) / 1e6, 15);
    expect(scores.byGroup.second!.cost).toMatchObject({ calls: 2, promptTokens: 0, withoutUsage: 2, money: 0 });
    expect(scores.cost.money).toBeCloseTo(0.0005, 15);
    expect(
      scorePredictions(
        items,
        predictions.map((p) => ({ ...p, calls: 0 })),
      ).cost.money,
    ).toBe(0);
  });

  it("takes the later of two lines for one log: a resumed run repeats failed calls", () => {
    const scores = scorePredictions(items, [...predictions, prediction("i3", "A", 6)]);
    expect(scores.strict.both).toMatchObject({ hits: 2, n: 4 });
    expect(scores.errors).toEqual({});
    expect(scores.superseded).toBe(1);
  });

  it("gives a clustered interval in place of Wilson's over several epochs", () => {
    const twice = [...predictions, ...predictions.map((p) => ({ ...p, epoch: 1 }))];
    const scores = scorePredictions(items, twice, { resamples: 500 });
    expect(scores).toMatchObject({ epochs: 2, items: 4, missing: 0 });
    const { wilson, clustered, n } = scores.strict.agent;
    expect(wilson).toBeNull();
    expect(n).toBe(8);
    // Four logs, half of them right, copied: as wide as with four values, 0 to 1.
    expect(clustered).toEqual({ low: 0, high: 1 });
  });

  it("has no share of nothing", () => {
    const scores = scorePredictions([items[0]!], [predictions[0]!]);
    expect(scores.strict.lateStep).toEqual({ hits: 0, n: 0, value: null, wilson: null, clustered: null });
  });
});

describe("sortPredictions", () => {
  it("orders by item, then epoch, strangers last", () => {
    const items = [{ id: "b" }, { id: "a" }];
    const shuffled = [
      prediction("x", null, null),
      prediction("a", null, null, { epoch: 1 }),
      prediction("b", null, null, { epoch: 1 }),
      prediction("a", null, null),
      prediction("b", null, null),
    ];
    expect(sortPredictions(shuffled, items).map((p) => `${p.itemId}${p.epoch}`)).toEqual([
      "b0",
      "b1",
      "a0",
      "a1",
      "x0",
    ]);
  });
});

describe("comparePaired", () => {
  const items = Array.from({ length: 13 }, (_, i) => run(`i${i}`, ["A", "B"], 0));
  const right = items.map((item) => prediction(item.id, "A", 0));
  // Wrong on ten of thirteen.
  const worse = items.map((item, i) => prediction(item.id, i < 10 ? "B" : "A", 0));

  it("pairs by log and epoch", () => {
    const result = comparePaired(items, right, worse, "agent", { seed: 1, resamples: 1000 })!;
    expect(result).toMatchObject({ pairs: 13, first: 1, mcNemar: { onlyFirst: 10, onlySecond: 0 } });
    expect(result.mcNemar!.pValue).toBeCloseTo(2 / 2 ** 10, 12);
    expect(result.difference.mean).toBeCloseTo(10 / 13, 12);
    expect(comparePaired(items, right, worse, "step", { seed: 1, resamples: 100 })!.mcNemar!.pValue).toBe(1);
  });

  it("compares only what both have", () => {
    expect(comparePaired(items, right, worse.slice(0, 4), "agent", { seed: 1, resamples: 100 })!.pairs).toBe(4);
    expect(comparePaired(items, right, [], "agent", { seed: 1 })).toBeUndefined();
  });

  it("makes no McNemar test of several epochs", () => {
    const twice = (list: Prediction[]) => [...list, ...list.map((p) => ({ ...p, epoch: 1 }))];
    const result = comparePaired(items, twice(right), twice(worse), "agent", { seed: 1, resamples: 100 })!;
    expect(result).toMatchObject({ pairs: 26, mcNemar: null });
    expect(result.difference.clusters).toBe(13);
  });
});
