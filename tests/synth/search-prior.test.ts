import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { silentProgress } from "../../src/runs/progress.ts";
import { openRunFolder } from "../../src/runs/run-folder.ts";
import { synthConfigSchema } from "../../synth/pipeline/config.ts";
import { type SearchRecord, searchRecordSchema } from "../../synth/pipeline/records.ts";
import { pooledWeights, weightsOf } from "../../synth/search/attribution-prior.ts";
import { openPrior } from "../../synth/search/prior-source.ts";
import { synthesize } from "../../synth/synthesize.ts";

const folder = mkdtempSync(join(tmpdir(), "rootstep-prior-"));
afterAll(() => rmSync(folder, { recursive: true }));

const agents = ["planner", "solver", "planner", "solver", "verifier"];

describe("the weights of an attribution method's answer", () => {
  // By hand: the named steps share the strength, the others the rest.
  it.each([
    ["a step", { agent: "solver", step: 1 }, [0.15, 0.4, 0.15, 0.15, 0.15]],
    ["a step, whatever agent is named with it", { agent: "verifier", step: 1 }, [0.15, 0.4, 0.15, 0.15, 0.15]],
    ["an agent alone", { agent: "Planner", step: null }, [0.2, 0.2, 0.2, 0.2, 0.2]],
    ["an agent alone that acted once", { agent: "verifier", step: null }, [0.15, 0.15, 0.15, 0.15, 0.4]],
    ["a step outside the run, by its agent", { agent: "verifier", step: 9 }, [0.15, 0.15, 0.15, 0.15, 0.4]],
    [
      "a ranking, each place half of the one before: .4 · 2/3 and .4 · 1/3",
      {
        agent: "solver",
        step: 3,
        ranking: [
          { agent: "solver", step: 3, score: 9 },
          { agent: "solver", step: 1, score: 8 },
          { agent: "solver", step: 3, score: 1 },
        ],
      },
      [0.2, 0.4 / 3, 0.2, 0.8 / 3, 0.2],
    ],
  ])("%s", (_, opinion, expected) => {
    const weights = weightsOf(opinion, agents, 0.4) ?? [];
    expect(weights).toHaveLength(5);
    for (const [step, weight] of weights.entries()) expect(weight).toBeCloseTo(expected[step] ?? Number.NaN, 12);
  });

  it.each([
    ["nobody", { agent: null, step: null }],
    ["an agent that is not there", { agent: "critic", step: null }],
    ["a step before the first", { agent: null, step: -1 }],
    ["a fraction", { agent: null, step: 1.5 }],
  ])("are none for %s", (_, opinion) => expect(weightsOf(opinion, agents, 0.4)).toBeUndefined());

  it("leave no step at 0, and sum to 1, also where the only step is named", () => {
    expect(weightsOf({ agent: "a", step: 0 }, ["a"], 0.4)).toEqual([1]);
    const weights = weightsOf({ agent: "solver", step: 1 }, agents, 0.99) ?? [];
    expect(Math.min(...weights)).toBeGreaterThan(0);
    expect(weights.reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 12);
  });

  it("are the mean over epochs, those without an opinion left out", () => {
    const opinions = [
      { agent: "a", step: 0 },
      { agent: null, step: null },
      { agent: "b", step: 1 },
    ];
    // (.6 + .4)/2 each: of two steps one gets .6, the other .4.
    expect(pooledWeights(opinions, ["a", "b"], 0.6)).toEqual([0.5, 0.5]);
    expect(pooledWeights([{ agent: null, step: null }], ["a", "b"], 0.6)).toBeUndefined();
  });
});

const prediction = (itemId: string, step: number | null, epoch = 0) => ({
  itemId,
  epoch,
  method: "all-at-once",
  agent: null,
  step,
  evidence: [],
  parsePath: "json",
  calls: 1,
  latencyMs: 1,
});
const lines = (...values: unknown[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join("");

describe("the setting search.prior", () => {
  it("reads predictions by run; of several lines for one log the last counts", () => {
    const file = join(folder, "predictions.jsonl");
    writeFileSync(file, lines(prediction("x", 2), prediction("y", 0), prediction("x", 1)));
    const source = openPrior(file, 0.5);
    if (source.kind !== "predictions") throw new Error("not read as a file");
    expect(source.weightsFor("x", ["a", "b", "c"])).toEqual([0.25, 0.5, 0.25]);
    expect(source.weightsFor("y", ["a", "b", "c"])).toEqual([0.5, 0.25, 0.25]);
    expect(source.weightsFor("z", ["a", "b", "c"])).toBeUndefined();
  });

  it("takes the id of a method, and says what is known where it is neither", () => {
    expect(openPrior("floor-last-step", 0.5)).toEqual({ kind: "method", id: "floor-last-step" });
    expect(() => openPrior(join(folder, "missing.jsonl"), 0.5)).toThrow(/neither an attribution method .*all-at-once/u);
  });

  it("names the line of a damaged file", () => {
    const file = join(folder, "damaged.jsonl");
    writeFileSync(file, `${lines(prediction("x", 2))}{"itemId":\n`);
    expect(() => openPrior(file, 0.5)).toThrow(/damaged\.jsonl:2/u);
  });
});

async function searches(name: string, search: Record<string, unknown>): Promise<SearchRecord[]> {
  const config = synthConfigSchema.parse({
    seed: 4,
    tasks: { set: "chain", limit: 12 },
    model: { regime: "systematic", noise: 0 },
    inject: { operator: "none" },
    search,
  });
  const path = join(folder, name);
  const run = openRunFolder({ path, kind: "synth", version: "test", settings: config, now: () => new Date(0) });
  try {
    const openModel = () => {
      throw new Error("no model server in this test");
    };
    await synthesize({ config, folder: run, progress: silentProgress, openModel });
    const journal = run.journal("searches.jsonl", searchRecordSchema);
    journal.close();
    return [...journal.existing];
  } finally {
    run.release();
  }
}

describe("a search with a prior, from the configuration to the labels", () => {
  it("finds the same steps with fewer live calls where the predictions are right, and the same where they are wrong", async () => {
    const calls = (records: readonly SearchRecord[]) => records.reduce((sum, { liveCalls }) => sum + liveCalls, 0);
    const labels = (records: readonly SearchRecord[]) =>
      records.flatMap(({ id, step, verdict }) => (verdict === "earliest-confirmed" ? [`${id} ${step}`] : []));
    const blind = await searches("blind", {});
    expect(labels(blind).length).toBeGreaterThan(5);
    const named = blind.filter(({ step }) => step !== undefined);
    const right = join(folder, "right.jsonl");
    writeFileSync(right, lines(...named.map(({ id, step }) => prediction(id, step ?? null))));
    const told = await searches("told", { prior: right, priorStrength: 0.9 });
    const isPrior = ({ id, prior, step }: SearchRecord) =>
      named.some((one) => one.id === id) ? prior?.indexOf(Math.max(...prior)) === step : prior === undefined;
    expect(told.every(isPrior)).toBe(true);
    expect(labels(told)).toEqual(expect.arrayContaining(labels(blind)));
    expect(calls(told)).toBeLessThan(calls(blind));
    const wrong = join(folder, "wrong.jsonl");
    writeFileSync(wrong, lines(...named.map(({ id, step }) => prediction(id, step === 0 ? 1 : 0))));
    expect(labels(await searches("misled", { prior: wrong, priorStrength: 0.9 }))).toEqual(
      expect.arrayContaining(labels(blind).slice(0, 3)),
    );
  }, 120_000);

  it("asks a method about each run", async () => {
    const records = await searches("method", { prior: "floor-last-step", priorStrength: 0.7 });
    expect(records.length).toBeGreaterThan(5);
    for (const { prior = [] } of records) {
      expect(prior.at(-1)).toBeCloseTo(0.7, 12);
      expect(prior.reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 12);
    }
  }, 120_000);
});
