import { describe, expect, it } from "vitest";
import { compareRuns } from "../../src/evaluation/compare-runs.ts";
import { ALL, type ComparedRow, type ComparedRun, type Comparison } from "../../src/evaluation/comparison.ts";
import { onFrontier } from "../../src/evaluation/cost.ts";
import { type EvaluationItem, loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import type { Prediction } from "../../src/evaluation/prediction.ts";
import { loadReferences } from "../../src/evaluation/references.ts";
import { type ScoreSettings, scorePredictions } from "../../src/evaluation/score.ts";
import { run as log } from "./items.ts";
import { prediction, rightOnFirst } from "./predictions.ts";

function compared(
  name: string,
  items: readonly EvaluationItem[],
  predictions: readonly Prediction[],
  settings: ScoreSettings = {},
  over: Partial<ComparedRun> = {},
): ComparedRun {
  const scores = scorePredictions(items, predictions, settings);
  return { name, method: name, model: null, withReference: false, items, predictions, scores, marks: [], ...over };
}
const rows = (comparison: Comparison, group: string, kind: ComparedRow["kind"]) =>
  comparison.groups.find(({ name }) => name === group)!.rows.filter((row) => row.kind === kind);
const settings = { seed: 1, resamples: 500 };

const items = Array.from({ length: 13 }, (_, i) => log(`i${i}`, ["A", "B", "C"], i % 3));

describe("compareRuns", () => {
  it("pairs each run with the first one, on the logs both have", () => {
    const first = compared("first", items, rightOnFirst(items, 13));
    const second = compared("second", items.slice(0, 12), rightOnFirst(items.slice(0, 12), 2));
    const comparison = compareRuns([first, second], settings);
    expect(comparison).toMatchObject({ baseline: "first", notes: [] });
    const [one, two] = rows(comparison, "made-up", "measured");
    expect(one!.paired).toBeNull();
    expect(one!.cells.step).toMatchObject({ value: 1, n: 13 });
    expect(two!.cells.step).toMatchObject({ value: 2 / 12, n: 12, interval: "wilson" });
    const { step } = two!.paired!;
    expect(step).toMatchObject({ pairs: 12, first: 2 / 12, second: 1, mcNemar: { onlyFirst: 0, onlySecond: 10 } });
    // Binomial: 2 · ½¹⁰.
    expect(step.mcNemar!.pValue).toBeCloseTo(2 / 1024, 12);
    expect(step.difference.mean).toBeCloseTo(-10 / 12, 12);
    expect(step.difference.interval.high).toBeLessThan(0);
  });

  it("takes another baseline by name, and refuses one that is not there", () => {
    const runs = [compared("a", items, rightOnFirst(items, 4)), compared("b", items, rightOnFirst(items, 8))];
    const comparison = compareRuns(runs, { ...settings, baseline: "b" });
    const [a, b] = rows(comparison, "made-up", "measured");
    expect(b!.paired).toBeNull();
    expect(a!.paired!.step.difference.mean).toBeCloseTo(-4 / 13, 12);
    expect(() => compareRuns(runs, { ...settings, baseline: "c" })).toThrow(RangeError);
  });

  it("does not pair logs that only share an id, and says so", () => {
    const others = items.map((item, i) => (i === 0 ? log("i0", ["A", "B", "Z"], 0) : item));
    const runs = [compared("a", items, rightOnFirst(items, 4)), compared("b", others, rightOnFirst(others, 8))];
    const comparison = compareRuns(runs, settings);
    expect(rows(comparison, "made-up", "measured")[1]!.paired!.step.pairs).toBe(12);
    expect(comparison.notes).toEqual([expect.stringContaining("b: 1 logs bear the id of another log of a")]);
  });

  it("makes a group per subset, one over all for runs with several, and finds a baseline where the first has no logs", () => {
    const [left, right] = ["left", "right"].map((subset) =>
      items.map((item) => ({ ...item, id: `${subset}/${item.id}`, subset })),
    );
    const runs = [
      compared("only-left", left!, rightOnFirst(left!, 5)),
      compared("both", [...left!, ...right!], rightOnFirst([...left!, ...right!], 9)),
      compared("only-right", right!, rightOnFirst(right!, 5)),
    ];
    const { groups } = compareRuns(runs, settings);
    const shown = groups.map(({ name, baseline, rows: of }) => [
      name,
      baseline,
      ...of.filter(({ kind }) => kind === "measured").map((row) => `${row.name} ${row.paired?.step.pairs ?? "–"}`),
    ]);
    expect(shown).toEqual([
      ["left", "only-left", "only-left –", "both 13"],
      ["right", "both", "both –", "only-right 13"],
      [ALL, "both", "both –"],
    ]);
  });

  it("says what is missing, unknown, replaced or marked", () => {
    const lines = [
      ...rightOnFirst(items, 5).slice(0, 10),
      prediction("i0", null, null),
      prediction("stranger", "A", 0),
      prediction("i0", "A", 0, { epoch: 7 }),
    ];
    const one = compared("one", items, lines, { epochs: 1 }, { marks: ["data differs"] });
    const comparison = compareRuns([one], settings);
    expect(comparison.notes).toEqual([
      "one: 10 of 13 predictions; the rest is missing and not counted",
      "one: 2 predictions for ids or epochs that the run does not have (i0, stranger); not counted",
      "one: 1 lines replaced by later ones for the same log and epoch",
      "one: data differs",
    ]);
    expect(comparison.runs[0]).toMatchObject({ counted: 10, planned: 13, unknown: 2, superseded: 1 });
    expect(rows(comparison, "made-up", "measured")[0]).toMatchObject({ counted: 10, planned: 13 });
    expect(rows(comparison, "made-up", "measured")[0]!.cells.step).toMatchObject({ n: 10, value: 4 / 10 });
  });

  it("gives clustered intervals and no McNemar test with several epochs", () => {
    const twice = (right: number) => [0, 1].flatMap((epoch) => rightOnFirst(items, right, { epoch }));
    const comparison = compareRuns([compared("a", items, twice(4)), compared("b", items, twice(8))], settings);
    const [, b] = rows(comparison, "made-up", "measured");
    expect(b!.cells.agent).toMatchObject({ interval: "clustered", n: 26 });
    expect(b!.paired!.step.mcNemar).toBeNull();
  });

  it("labels runs by method, model and setting where that tells them apart", () => {
    const predictions = rightOnFirst(items, 4);
    const named = (name: string, over: Partial<ComparedRun>) => compared(name, items, predictions, {}, over);
    const { groups } = compareRuns(
      [
        named("x", { method: "m", model: "big" }),
        named("y", { method: "m", model: "big", withReference: true }),
        named("z1", { method: "m", model: "small" }),
        named("z2", { method: "m", model: "small" }),
      ],
      settings,
    );
    const labels = groups[0]!.rows.filter(({ kind }) => kind === "measured").map((row) => row.label);
    expect(labels).toEqual(["m, big", "m, big, w/ G", "z1", "z2"]);
  });
});

describe("floors and published results in a comparison of Who&When runs", async () => {
  const { items: all } = await loadWhoAndWhen();
  const references = await loadReferences("who-and-when");
  const always = (step: number) => all.map(({ id }) => prediction(id, "WebSurfer", step, { calls: 0 }));
  const comparison = compareRuns([compared("always-1", all, always(1)), compared("always-4", all, always(4))], {
    ...settings,
    references,
    benchmark: all,
  });

  it("has the golden floors in rows of their own", () => {
    const floor = (group: string, name: string) => rows(comparison, group, "floor").find((row) => row.name === name)!;
    expect((100 * floor("Algorithm-Generated", "constant-step").cells.within3!.value!).toFixed(2)).toBe("86.51");
    expect((100 * floor("Hand-Crafted", "constant-agent").cells.agent!.value!).toFixed(2)).toBe("56.90");
    expect(floor("Hand-Crafted", "true-agent-first-turn").isBar).toBe(false);
    expect(floor("Hand-Crafted", "most-talkative-by-characters")).toMatchObject({
      isBar: false,
      detail: expect.stringContaining("ours"),
    });
    expect(floor("Algorithm-Generated", "constant-step").detail).toBe(
      "exact: always 1; ±1: always 1; ±2: always 2; ±3: always 3",
    );
  });

  it("marks measured cells below their floor", () => {
    const [one, four] = rows(comparison, "Algorithm-Generated", "measured");
    expect(one!.cells.step!.belowFloor).toBeNull();
    expect(four!.cells.step!.belowFloor).toBe("constant-step (always 1)");
    expect(four!.cells.agent!.belowFloor).toContain("most-talkative-agent-without");
  });

  it("has published results marked as such, with source, setting, n and floor mark, and never an interval", () => {
    const published = rows(comparison, "Algorithm-Generated", "published");
    expect(published.length).toBeGreaterThan(20);
    for (const row of published) {
      expect(row.source).not.toBe("");
      expect(["with", "without", "unstated"]).toContain(row.reference);
      expect(row).toMatchObject({ cost: null, paired: null, frontier: null, counted: null });
      for (const cell of Object.values(row.cells)) expect(cell).toMatchObject({ n: 126, low: null, interval: null });
    }
    const aig = published.filter((row) => row.method === "AIG" && row.cells.within3?.value === 0.84);
    expect(aig.map((row) => row.cells.within3!.belowFloor)).toContain("constant-step (always 3)");
    // What is printed is printed once.
    expect(published.flatMap((row) => Object.keys(row.cells)).length).toBe(
      references.filter((reference) => reference.subset === "Algorithm-Generated").length,
    );
  });

  it("has no published results over all logs", () => {
    expect(comparison.groups.map(({ name }) => name)).toEqual(["Algorithm-Generated", "Hand-Crafted", ALL]);
    expect(rows(comparison, ALL, "published")).toEqual([]);
  });
});

describe("cost and frontier", () => {
  it("is by money where every price is known, else by tokens, else by calls", () => {
    const axis = (runs: ComparedRun[]) => compareRuns(runs, settings).groups[0]!.costAxis;
    const usage = rightOnFirst(items, 4);
    const unmetered = rightOnFirst(items, 8).map(({ usage: _, ...rest }) => rest);
    const prices = { prompt: 2, completion: 10 };
    const free = compared("free", items, rightOnFirst(items, 2, { calls: 0 }));
    const priced = compared("priced", items, usage, { prices });
    expect(axis([free, priced])).toBe("money");
    expect(axis([priced, compared("unpriced", items, usage)])).toBe("tokens");
    expect(axis([priced, compared("unmetered", items, unmetered, { prices })])).toBe("calls");
    // 13 × (100 · 2 + 10 · 10) / 10⁶.
    expect(priced.scores.cost.money).toBeCloseTo(0.0039, 12);
    expect(free.scores.cost.money).toBe(0);
  });

  it("keeps what nothing matches and beats", () => {
    const points = [
      { cost: 1, accuracy: 0.2 },
      { cost: 2, accuracy: 0.2 },
      { cost: 2, accuracy: 0.5 },
      { cost: 2, accuracy: 0.5 },
      { cost: 9, accuracy: 0.6 },
      { cost: 0, accuracy: null },
      { cost: null, accuracy: 0.9 },
    ];
    expect(onFrontier(points)).toEqual([true, false, true, true, true, false, false]);
  });
});
