import { rmSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { synthConfigSchema } from "../../../synth/pipeline/config.ts";
import { type PlannedPart, planSynth, type SynthPlan } from "../../../synth/plan/plan.ts";
import { makeRun, regimeProfiles } from "../../../synth/plan/profile.ts";
import { assumedShape } from "../../../synth/plan/shape.ts";
import { simulateSearch } from "../../../synth/plan/simulate.ts";
import { paper } from "../../../synth/search/paper.ts";
import { madeDataset } from "../dataset/made-dataset.ts";

const LATENCY = { latencyMs: 1000 };
const SERVER = { provider: "openai-compatible", baseUrl: "http://127.0.0.1:1/v1", model: "m" };

const partOf = (plan: SynthPlan, name: string): PlannedPart => {
  const part = plan.parts.find(({ part: id }) => id === name);
  if (part === undefined) throw new Error(`the plan has no part ${name}`);
  return part;
};

describe("a made-up run", () => {
  it("costs the calls after the cut, and one of the analyzer at each step that is corrected", async () => {
    const run = makeRun(regimeProfiles(0.1).slip, 6, 1, "a");
    await run.rerun("control", 2, 0);
    expect(run.counted().agents).toEqual([0, 0, 0, 1, 1, 1]);
    await run.hasCorrection(4);
    await run.hasCorrection(4);
    await run.rerun("treated", 4, 0);
    expect(run.counted()).toEqual({ agents: [0, 0, 0, 1, 1, 2], analyzer: [0, 0, 0, 0, 1, 0] });
    expect(run.liveCalls).toBe(5);
  });

  it.each(["slip", "systematic"] as const)(
    "succeeds at the rates of its %s profile (seed 5, 4,000 reruns)",
    async (regime) => {
      const profile = regimeProfiles(0.1)[regime];
      const run = makeRun(profile, 8, 5, "rates");
      const rate = async (arm: "treated" | "control", step: number): Promise<number> => {
        let hits = 0;
        for (let n = 0; n < 4000; n++) hits += Number(await run.rerun(arm, step, n));
        return hits / 4000;
      };
      // Standard error at most .008. Slip errs again in 3 of 10 reruns, systematic in 9 of 10.
      expect(Math.abs((await rate("treated", run.decisive)) - 0.9)).toBeLessThan(0.03);
      expect(Math.abs((await rate("control", run.decisive)) - 0.02)).toBeLessThan(0.03);
      if (run.decisive === 0) throw new Error("this seed has no step before t*");
      const expected = regime === "slip" ? 0.9 * 0.7 + 0.02 * 0.3 : 0.9 * 0.1 + 0.02 * 0.9;
      expect(Math.abs((await rate("control", run.decisive - 1)) - expected)).toBeLessThan(0.03);
    },
  );

  it("asked by the paper's protocol costs what its arithmetic says", async () => {
    const config = synthConfigSchema.parse({});
    const [unit] = await simulateSearch(paper, { ...regimeProfiles(0).systematic, clean: 0, broken: 0 }, [5], config);
    // Nothing ever flips: one correction and one rerun at each step, 4 + 3 + 2 + 1 + 0 live calls.
    expect(unit).toEqual({ agents: [0, 1, 2, 3, 4], analyzer: [1, 1, 1, 1, 1], labelled: false });
  });
});

describe("synth plan", () => {
  it("brackets what the run on the simulator then takes", async () => {
    const settings = {
      tasks: { set: "chain", limit: 40 },
      model: { regime: "systematic", hardRate: 0.5, noise: 0.02 },
      search: { strategies: ["bayes", "paper"] },
    };
    const plan = await planSynth(synthConfigSchema.parse(settings), LATENCY);
    const made = await madeDataset(settings);
    rmSync(made.root, { recursive: true, force: true });
    const { failedRuns, strategies, injection } = made.report;
    const within = ({ low, high }: { low: number; high: number }, value: number): void => {
      expect(value).toBeGreaterThanOrEqual(low);
      expect(value).toBeLessThanOrEqual(high);
    };
    within(partOf(plan, "search: bayes").units, failedRuns);
    for (const { strategy, liveCalls } of strategies) within(partOf(plan, `search: ${strategy}`).calls, liveCalls);
    within(partOf(plan, "inject: any").calls, injection.liveCalls);
    expect(partOf(plan, "search: exhaustive").configured).toBe(false);
    expect(partOf(plan, "search: exhaustive").calls.expected).toBeGreaterThan(
      partOf(plan, "search: bayes").calls.expected,
    );
    expect(partOf(plan, "search: bayes").calls.expected).toBeGreaterThan(partOf(plan, "search: paper").calls.expected);
  }, 120_000);

  it("is the same for the same seed, and asks no server", async () => {
    const config = synthConfigSchema.parse({ tasks: { set: "chain", limit: 10 }, model: SERVER });
    expect(await planSynth(config, LATENCY)).toEqual(await planSynth(config, LATENCY));
  });

  it("adds up the configured parts, at the configuration's prices, concurrency and limits", async () => {
    const prices = { prompt: 2, completion: 10 };
    const config = synthConfigSchema.parse({
      tasks: { set: "chain", limit: 10, runs: 2 },
      model: { ...SERVER, prices, concurrency: 4 },
      concurrency: 8,
      inject: { operator: "none" },
      maxCalls: 7,
    });
    const plan = await planSynth(config, { ...LATENCY, failureShare: 0.5 });
    const [record, bayes] = [partOf(plan, "record"), partOf(plan, "search: bayes")];
    expect(plan.parts.map(({ part }) => part)).not.toContain("inject: none");
    expect(bayes.units).toEqual({ low: 10, expected: 10, high: 10 });
    expect(record.units.expected).toBe(20);
    expect(plan.total.calls.expected).toBeCloseTo(record.calls.expected + bayes.calls.expected, 9);
    for (const end of ["low", "expected", "high"] as const) {
      const priced = (record.promptTokens[end] * 2 + record.completionTokens[end] * 10) / 1e6;
      expect(record.money?.[end]).toBeCloseTo(priced, 9);
      // One second a call, four at a time: the server's limit, not the eight runs side by side.
      expect(bayes.seconds?.[end]).toBeCloseTo(bayes.calls[end] / 4, 9);
    }
    expect(plan.caps.maxCalls).toBe(7);
    const slow = synthConfigSchema.parse({ ...config, model: { ...SERVER, concurrency: 4, requestsPerMinute: 6 } });
    const limited = await planSynth(slow, { ...LATENCY, failureShare: 0.5 });
    expect(partOf(limited, "record").seconds?.expected).toBeCloseTo(10 * record.calls.expected, 6);
    expect(limited.total.money).toBeNull();
  });

  it("plans systems the simulator cannot play from a given number of steps", () => {
    const task = { id: "t", text: "x".repeat(500), source: "s", groupId: "g" };
    const { steps } = assumedShape(task, 3);
    // 2,000 characters are 500 tokens at 4 a token; each step before adds 250.
    expect(steps.map(({ prompt }) => prompt.expected)).toEqual([500, 750, 1000]);
    expect(assumedShape(task, 2, 100).steps[1]).toMatchObject({
      prompt: { high: 2000 / 3 + 100 },
      completion: { high: 100 },
    });
  });
});
