import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeTracerTraj } from "../../../src/formats/tracertraj/write.ts";
import { shippedPath } from "../../../src/package-root.ts";
import { stream } from "../../../src/random.ts";
import type { Trajectory } from "../../../src/trajectory/schema.ts";
import { readForStats } from "../../../synth/dataset/read-for-stats.ts";
import { compareData, dataStats, type StatsInput } from "../../../synth/dataset/stats.ts";
import { auc, logisticScore, twoSampleAuc } from "../../../synth/dataset/two-sample.ts";
import { madeDataset, SMALL } from "./made-dataset.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "rootstep-stats-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SEED = 20_240_611;

function failure(id: string, steps: number, decisive: number, of: Partial<Trajectory> = {}): Trajectory {
  return {
    schemaVersion: 1,
    id,
    task: { id, text: "t", source: "made", groupId: `group ${id}` },
    system: "team",
    stepPolicy: "per-call",
    steps: Array.from({ length: steps }, (_, index) => ({
      index,
      agent: index % 2 === 0 ? "A" : "B",
      kind: "message" as const,
      content: "x".repeat(9),
      toolCalls: [],
      retrieved: [],
      callIds: [],
    })),
    outcome: { success: false, checker: "made" },
    labels: [{ agent: decisive % 2 === 0 ? "A" : "B", step: decisive, source: "human" }],
    provenance: { kind: "imported", simulated: false, conversions: [] },
    ...of,
  };
}

const input = (name: string, trajectories: readonly Trajectory[]): StatsInput => ({
  name,
  trajectories,
  editSizes: new Map(),
  badRecords: 0,
});

describe("AUC", () => {
  it("is scikit-learn's documented example", () => {
    // sklearn.metrics.roc_auc_score: y_true [0, 0, 1, 1], y_score [.1, .4, .35, .8] → 0.75.
    expect(auc([0.1, 0.4], [0.35, 0.8])).toBe(0.75);
  });

  it("is the share of pairs in which the second value is larger, ties half (seed 20240611)", () => {
    const random = stream(SEED, "pairs");
    for (let trial = 0; trial < 50; trial++) {
      const draw = () => Array.from({ length: 1 + random.int(30) }, () => random.int(8));
      const [low, high] = [draw(), draw()];
      let wins = 0;
      for (const a of low) for (const b of high) wins += a < b ? 1 : a === b ? 0.5 : 0;
      expect(auc(low, high)).toBeCloseTo(wins / (low.length * high.length), 12);
    }
  });
});

/** A fixed data set by formula, the same as in the independent computation. */
const FIXED = Array.from({ length: 40 }, (_, i) => {
  const isPositive = i % 2 === 1;
  const features = [
    ((37 * i + 11) % 101) / 101 + (isPositive ? 0.3 : 0),
    (((53 * i + 7) % 97) / 97) * 10,
    ((i * i) % 13) + (isPositive ? 1 : 0),
  ];
  return { features, isPositive };
});

describe("the two-sample classifier", () => {
  it("fits what an independent computation fits", () => {
    // From a Python program of its own: gradient ascent on the penalised log-likelihood to a gradient of 1e-15, pairs counted.
    const score = logisticScore(
      FIXED.map(({ features }) => features),
      FIXED.map(({ isPositive }) => isPositive),
    );
    const scores = FIXED.map(({ features }) => score(features));
    [-1.740506, 0.47137, 0.52495, -0.263074, -0.25546].forEach((golden, i) => {
      expect(scores[i]).toBeCloseTo(golden, 5);
    });
    const side = (isPositive: boolean) => scores.filter((_, i) => FIXED[i]?.isPositive === isPositive);
    expect(auc(side(false), side(true))).toBeCloseTo(0.77, 10);
  });

  it("finds Φ(d/√2) for normals a distance d apart, and covers it (seed 20240611)", () => {
    const random = stream(SEED, "normals");
    const draw = (n: number, shift: number) =>
      Array.from({ length: n }, (_, i) => ({
        features: [random.normal() + shift, random.normal()],
        cluster: `${shift} ${i}`,
      }));
    const apart = twoSampleAuc(draw(300, 0), draw(300, 1), SEED);
    // Φ(1/√2) = 0.76025; standard error of an AUC of 300 against 300 about .02.
    expect(Math.abs((apart?.auc ?? 0) - 0.76025)).toBeLessThan(0.06);
    expect(apart?.interval.low).toBeLessThan(0.76025);
    expect(apart?.interval.high).toBeGreaterThan(0.76025);
    const same = twoSampleAuc(
      draw(300, 0),
      draw(300, 0).map((one) => ({ ...one, cluster: `other ${one.cluster}` })),
      SEED,
    );
    expect(Math.abs((same?.auc ?? 0) - 0.5)).toBeLessThan(0.08);
  });

  it("keeps a task group in one fold: what only the group tells is not found", () => {
    // One feature per group that is 1 in it: of a group not trained on, nothing is known.
    const set = (from: number) =>
      [0, 1, 2, 3, 4].flatMap((group) =>
        Array.from({ length: 20 }, () => ({
          cluster: `g${from + group}`,
          features: Array.from({ length: 10 }, (_, feature) => Number(feature === from + group)),
        })),
      );
    const [first, second] = [set(0), set(5)];
    const alone = (samples: typeof first) => samples.map((one, i) => ({ ...one, cluster: `${one.cluster} ${i}` }));
    expect(twoSampleAuc(first, second, SEED)?.auc).toBeCloseTo(0.5, 6);
    expect(twoSampleAuc(alone(first), alone(second), SEED)?.auc).toBeCloseTo(1, 6);
  });

  it("gives the same for the same seed whatever the order, and nothing for a set of one group", () => {
    const random = stream(SEED, "order");
    const set = (name: string) =>
      Array.from({ length: 20 }, (_, i) => ({ features: [random.next()], cluster: `${name}${i}` }));
    const [first, second] = [set("a"), set("b")];
    const turned = twoSampleAuc([...first].reverse(), [...second].reverse(), 3);
    expect(turned?.auc).toBeCloseTo(twoSampleAuc(first, second, 3)?.auc ?? 0, 12);
    expect(twoSampleAuc(first.slice(0, 1), second, 3)).toBeUndefined();
  });
});

describe("data stats", () => {
  it("counts what is there and describes labelled failures only", () => {
    const success = failure("s", 4, 1, { outcome: { success: true, checker: "made" } });
    const classed = failure("c", 5, 4, {
      labels: [{ agent: "a", step: 4, source: "human", extra: { symptom: "loop" } }],
    });
    const bare = failure("n", 3, 0, { labels: [] });
    const stats = dataStats(input("made", [failure("f", 3, 1), classed, success, bare]));
    expect(stats).toMatchObject({ records: 4, failed: 3, labelledFailures: 2, taskGroups: 4, simulated: 0 });
    expect(stats.labels).toEqual({ human: 3, none: 1 });
    // "A" and "a" are one agent.
    expect(stats.blamedAgents).toEqual({ a: 1, b: 1 });
    expect(stats.symptoms).toEqual({ loop: 1 });
    // Positions 1/2 and 4/4; lengths 3 and 5; 1 of 3 and 3 of 5 steps by the blamed agent.
    expect(stats.features.position).toMatchObject({ n: 2, mean: 0.75, median: 0.75, q25: 0.625, least: 0.5, most: 1 });
    expect(stats.features.length).toMatchObject({ mean: 4, least: 3, most: 5 });
    expect(stats.features["blamed-share"]?.mean).toBeCloseTo((1 / 3 + 3 / 5) / 2, 12);
    expect(stats.features["step-characters"]?.mean).toBeCloseTo(1, 12);
    expect(stats.editSize).toBeNull();
  });

  it("compares feature by feature: late against early steps is an AUC of 1", () => {
    const early = Array.from({ length: 6 }, (_, i) => failure(`e${i}`, 6 + (i % 3), 0));
    const late = Array.from({ length: 6 }, (_, i) => failure(`l${i}`, 6 + (i % 3), 5));
    const { featureAuc, classifier, editSizeAuc } = compareData(input("a", early), input("b", late), 1);
    expect(featureAuc).toMatchObject({ position: 1, length: 0.5, agents: 0.5 });
    expect(classifier?.auc).toBe(1);
    expect(editSizeAuc).toBeNull();
  });

  it("reads Who&When and a file with a bad line, which it counts", async () => {
    const shipped = await readForStats(shippedPath("data", "who_and_when"));
    const stats = dataStats(shipped);
    // Who&When has 184 logs: 126 algorithm-generated and 58 hand-crafted.
    expect(stats.records).toBe(184);
    const file = join(folder, "some.jsonl");
    await writeTracerTraj([failure("f", 3, 1)], file);
    appendFileSync(file, "{broken\n");
    expect(await readForStats(file)).toMatchObject({ badRecords: 1, trajectories: [{ id: "f" }] });
  });

  it("takes edit sizes from the evidence of a dataset, of its counterfactual labels", async () => {
    const made = await madeDataset({ ...SMALL, tasks: { set: "chain", limit: 20 } });
    try {
      const stats = dataStats(await readForStats(made.path));
      expect(stats.records).toBe(made.report.dataset.train + made.report.dataset.test);
      expect(stats.simulated).toBe(stats.records);
      const confirmed = stats.labels["counterfactual earliest-confirmed"];
      expect(confirmed).toBeGreaterThan(0);
      expect(stats.editSize?.n).toBe(confirmed);
      expect(stats.editSize?.least).toBeGreaterThan(0);
    } finally {
      rmSync(made.root, { recursive: true, force: true });
    }
  }, 120_000);
});
