import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { ErrorCode } from "../../src/errors.ts";
import { methodView } from "../../src/methods/view.ts";
import { trainConfigSchema } from "../../trainer/config.ts";
import { buildExamples } from "../../trainer/dataset.ts";
import type { Completion, RolloutSource, TrainingEngine } from "../../trainer/engines/engine.ts";
import { type Evaluation, type Metric, metricSchema } from "../../trainer/metrics.ts";
import { createTracerPolicy } from "../../trainer/tracer-policy.ts";
import { type TrainingEvent, type TrainRunOptions, trainRun } from "../../trainer/train-run.ts";
import { createTabularEngine, faultyRun, tabularCodec } from "./tabular-engine.ts";

const { examples } = buildExamples(
  Array.from({ length: 12 }, (_, i) => faultyRun(`run-${i}`, i % 3)),
  tabularCodec,
  { labels: ["injection"], maxPrompt: 1, withReference: true },
);
const heldOut = examples.slice(0, 3);

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

async function train(settings: object, more: Partial<TrainRunOptions> = {}) {
  const folder = await mkdtemp(join(tmpdir(), "rootstep-loop-"));
  folders.push(folder);
  const metrics: Metric[] = [];
  const evaluations: Evaluation[] = [];
  const events: TrainingEvent[] = [];
  const state = await trainRun({
    config: trainConfigSchema.parse({ steps: 3, promptsPerStep: 6, groupSize: 8, learningRate: 0.05, ...settings }),
    engine: createTabularEngine(),
    examples,
    heldOut,
    folder,
    onMetric: (metric) => metrics.push(metric),
    onEvaluation: (evaluation) => evaluations.push(evaluation),
    onEvent: (event) => events.push(event),
    ...more,
  });
  return { state, metrics, evaluations, events };
}

const code = (expected: ErrorCode) => expect.objectContaining({ code: expected });

/** The tabular engine with some verbs replaced: the faults of engines and samplers. */
const faulty = (fault: Partial<TrainingEngine>): TrainingEngine => ({ ...createTabularEngine(), ...fault });

function withCompletions(change: (completions: Completion[][]) => Completion[][]): TrainingEngine {
  const engine = createTabularEngine();
  return {
    ...engine,
    sample: async (request) => change((await engine.sample(request)).map((group) => [...group])),
  };
}

describe("GRPO on a tabular policy", () => {
  it("raises the mean reward from chance to near 1 and finds every held-out step", async () => {
    const { metrics, evaluations, state } = await train({ steps: 60, learningRate: 0.1, evalEvery: 20 });
    const mean = (part: Metric[]) => part.reduce((sum, { reward }) => sum + reward.mean, 0) / part.length;
    expect(mean(metrics.slice(0, 5))).toBeLessThan(0.5);
    expect(mean(metrics.slice(-5))).toBeGreaterThan(0.95);
    expect(evaluations.map(({ stepsDone }) => stepsDone)).toEqual([0, 20, 40, 60]);
    expect(evaluations.at(-1)).toMatchObject({ stepAccuracy: 1, agentAccuracy: 1, meanReward: 1, n: 3 });
    expect(state.best?.stepAccuracy).toBe(1);
  });

  it("records every step with the clip of the schedule and within the schema", async () => {
    const { metrics } = await train({ steps: 10, B0: 0.3 });
    expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const clips = [0.3, 0.27, 0.24, 0.21, 0.18, 0.15, 0.12, 0.09, 0.06, 0.06];
    metrics.forEach((metric, s) => {
      expect(metricSchema.parse(metric)).toEqual(metric);
      expect(metric.clip).toBeCloseTo(clips[s]!, 12);
    });
    expect(metrics.map(({ policyVersion }) => policyVersion)).toEqual(metrics.map((_, s) => 2 * s));
  });

  it("hands the schedule's clip and learning rate to the engine, and samples every step from a stream of its own", async () => {
    const engine = createTabularEngine();
    const clips: number[][] = [];
    const rates: number[] = [];
    const seeds: string[] = [];
    const spy: TrainingEngine = {
      ...engine,
      sample: (request) => {
        if (request.temperature === 1) seeds.push(request.seed);
        return engine.sample(request);
      },
      forwardBackward: (groups, loss) => {
        if (loss.kind === "clipped-surrogate") clips.push([loss.clipLow, loss.clipHigh]);
        return engine.forwardBackward(groups, loss);
      },
      optimStep: (adam) => {
        rates.push(adam.learningRate);
        return engine.optimStep(adam);
      },
    };
    const schedule = { steps: 4, B0: 0.4, learningRate: 0.08, decay: "linear", warmup: 2 };
    await train({ ...schedule, deadGroups: "resample" }, { engine: spy });
    // Two updates per step; B_s = .4, .3, .2, .1; the rate warms up over two steps and falls by a quarter per step.
    const twice = (values: number[]) =>
      values.flatMap((value) => [expect.closeTo(value, 12), expect.closeTo(value, 12)]);
    expect(clips.map(([low]) => low)).toEqual(twice([0.4, 0.3, 0.2, 0.1]));
    expect(clips.every(([low, high]) => low === high)).toBe(true);
    expect(rates).toEqual(twice([0.04, 0.06, 0.04, 0.02]));
    expect(seeds.length).toBeGreaterThanOrEqual(4);
    expect(new Set(seeds).size).toBe(seeds.length);
  });

  it("has ratio 1 and an idle clip with one update per batch, and a clip that acts with several", async () => {
    const once = await train({ minibatches: 1, learningRate: 0.5 });
    for (const { ratio, clipFraction, updates } of once.metrics) {
      expect(ratio).toMatchObject({ min: expect.closeTo(1, 12), max: expect.closeTo(1, 12) });
      expect([clipFraction, updates]).toEqual([0, 1]);
    }
    const often = await train({ minibatches: 2, epochsPerBatch: 2, learningRate: 0.5 });
    expect(often.metrics[0]!.updates).toBe(4);
    expect(often.metrics[0]!.clipFraction).toBeGreaterThan(0);
    expect(often.metrics[0]!.ratio!.max).toBeGreaterThan(1.2);
  });

  it("compares sampler and trainer on the first batch", async () => {
    const { events } = await train({});
    const checks = events.filter((event) => event.kind === "ratio-check");
    expect(checks).toHaveLength(1);
    expect(checks[0]!.stats.mean).toBeCloseTo(1, 9);
  });

  it("leaves dead groups out, keeps them, or draws further prompts within the bound", async () => {
    const settings = { steps: 1, groupSize: 2, promptsPerStep: 12, minibatches: 1 };
    const skip = (await train({ ...settings, deadGroups: "skip" })).metrics[0]!;
    expect(skip.deadGroups).toBeGreaterThan(0);
    expect(skip.trainedGroups).toBe(12 - skip.deadGroups);
    const keep = (await train({ ...settings, deadGroups: "keep" })).metrics[0]!;
    expect(keep.trainedGroups).toBe(12);
    expect(keep.gradNorm!).toBeLessThan(skip.gradNorm!);
    const resampled = await train({ ...settings, deadGroups: "resample", resampleRounds: 1 });
    const resample = resampled.metrics[0]!;
    expect(resample.groups).toBe(12 + skip.deadGroups);
    expect(resample.trainedGroups).toBe(resample.groups - resample.deadGroups);
    expect(resampled.state.position).toBe(resample.groups);
  });

  it("takes no update and says so where every group is dead", async () => {
    const silent = withCompletions((groups) => groups.map((group) => group.map(() => group[0]!)));
    const { metrics, state } = await train({ steps: 1 }, { engine: silent });
    expect(metrics[0]).toMatchObject({ updates: 0, loss: null, gradNorm: null, ratio: null, trainedGroups: 0 });
    expect(metrics[0]!.warnings).toContainEqual(expect.stringContaining("every group is dead"));
    expect(state.policyVersion).toBe(0);
  });

  it("masks, keeps or penalises truncated completions as set", async () => {
    const settings = { steps: 1, minibatches: 1, aggregation: "token-sum", normalizeStd: false } as const;
    const keep = (await train({ ...settings, truncated: "keep" })).metrics[0]!;
    const mask = (await train({ ...settings, truncated: "mask" })).metrics[0]!;
    const penalise = (await train({ ...settings, truncated: "penalise" })).metrics[0]!;
    expect(keep.truncated).toBeGreaterThan(0);
    for (const { reward, truncated } of [mask, penalise]) {
      expect([reward, truncated]).toEqual([keep.reward, keep.truncated]);
    }
    expect(new Set([keep.gradNorm, mask.gradNorm, penalise.gradNorm]).size).toBe(3);
  });

  it("warns when the policy hardly explores any more", async () => {
    const { metrics } = await train({ steps: 1, entropyFloor: 5 });
    expect(metrics[0]!.warnings).toContainEqual(expect.stringContaining("hardly explores"));
  });

  it("answers greedily through the interface of the method tracer", async () => {
    const engine = createTabularEngine();
    await train({ steps: 60, learningRate: 0.1 }, { engine });
    const policy = createTracerPolicy(engine, engine.codec, "tracer:test");
    const view = methodView(faultyRun("new", 1), { withReference: true });
    expect(await policy.predict(view, { epoch: 0, seed: 1 })).toBe("<think></think><answer>solver | 1</answer>");
    expect(await policy.predictBatch([view, methodView(faultyRun("newer", 2), { withReference: true })])).toEqual([
      "<think></think><answer>solver | 1</answer>",
      "<think></think><answer>planner | 2</answer>",
    ]);
    expect(await policy.predictBatch([])).toEqual([]);
  });
});

describe("a sampler apart from the engine", () => {
  /** A server that holds a copy of the weights, and is told when they change. */
  function server(engine: TrainingEngine, options: { readonly stale: boolean }) {
    const copy = createTabularEngine();
    const versions: number[] = [];
    const rollouts: RolloutSource = { id: "server", sample: (request) => copy.sample(request) };
    const sync = async (version: number) => {
      versions.push(version);
      if (version === 0 || !options.stale) await copy.importState(await engine.exportState());
    };
    return { rollouts, sync, versions };
  }

  it("gets every version of the policy, and old log-probabilities are computed on the engine", async () => {
    const engine = createTabularEngine();
    const { rollouts, sync, versions } = server(engine, { stale: false });
    const apart = await train({}, { engine, rollouts, sync });
    expect(versions).toEqual([0, 2, 4, 6]);
    expect(apart.metrics.map(({ samplerRatio }) => samplerRatio?.mean)).toEqual(
      [1, 1, 1].map((mean) => expect.closeTo(mean, 9)),
    );
    const together = await train({});
    expect(apart.metrics.map(({ reward }) => reward)).toEqual(together.metrics.map(({ reward }) => reward));
    expect(together.metrics[0]!.samplerRatio).toBeNull();
  });

  it("shows in the ratio when it goes on serving old weights", async () => {
    const engine = createTabularEngine();
    const stale = server(engine, { stale: true });
    const { metrics } = await train({ learningRate: 0.3, minibatches: 1 }, { engine, ...stale });
    expect(metrics[2]!.samplerRatio!.std).toBeGreaterThan(0.2);
    // Old log-probabilities are the engine's own, so its one update per batch still begins at ratio 1.
    expect(metrics[2]!.ratio).toMatchObject({ min: expect.closeTo(1, 12), max: expect.closeTo(1, 12) });
  });
});

describe("the loop stops with an explanation", () => {
  it("where sampler and trainer disagree at unchanged weights", async () => {
    const wrong = withCompletions((groups) =>
      groups.map((group) =>
        group.map((completion) => ({ ...completion, logprobs: completion.logprobs.map((logprob) => logprob * 1.5) })),
      ),
    );
    await expect(train({}, { engine: wrong })).rejects.toEqual(code("RATIO_MISMATCH"));
  });

  it("where the sampler returns too few groups, completions or log-probabilities", async () => {
    const faults: ((groups: Completion[][]) => Completion[][])[] = [
      (groups) => groups.slice(1),
      (groups) => groups.map((group) => group.slice(1)),
      (groups) => groups.map((group) => group.map((each) => ({ ...each, logprobs: each.logprobs.slice(1) }))),
      (groups) => groups.map((group) => group.map((each) => ({ ...each, logprobs: each.logprobs.map(() => 2) }))),
    ];
    for (const fault of faults) {
      await expect(train({}, { engine: withCompletions(fault) })).rejects.toEqual(code("ENGINE_FAILED"));
    }
  });

  it("where a log-probability, the loss or the gradient is not a number", async () => {
    const faults = [
      withCompletions((groups) =>
        groups.map((group) => group.map((each) => ({ ...each, logprobs: each.logprobs.map(() => Number.NaN) }))),
      ),
      faulty({ optimStep: async () => ({ gradNorm: Number.NaN }) }),
      faulty({ forwardBackward: async () => ({ loss: Number.NaN, logprobs: [] }) }),
      faulty({
        forward: async (groups) => groups.map((g) => g.completions.map((c) => c.tokens.map(() => Number.NaN))),
      }),
    ];
    for (const engine of faults) await expect(train({}, { engine })).rejects.toEqual(code("ENGINE_NAN"));
  });

  it("where the engine returns log-probabilities for other tokens than asked", async () => {
    const engine = faulty({ forwardBackward: async () => ({ loss: 1, logprobs: [] }) });
    await expect(train({}, { engine })).rejects.toEqual(code("ENGINE_FAILED"));
  });

  it("where the engine throws something of its own, naming engine and verb", async () => {
    const engine = faulty({
      optimStep: async () => {
        throw new Error("out of memory");
      },
    });
    await expect(train({}, { engine })).rejects.toThrow("optimStep failed: out of memory (engine tabular)");
    await expect(train({}, { engine })).rejects.toEqual(code("ENGINE_FAILED"));
  });

  it("where the mean reward stays at zero", async () => {
    const mute = withCompletions((groups) =>
      groups.map((group) => group.map((): Completion => ({ tokens: [0], logprobs: [-1], finishReason: "stop" }))),
    );
    const stop = { collapseReward: 0.01, collapseSteps: 3 };
    const run = train({ steps: 10, stop }, { engine: mute });
    await expect(run).rejects.toEqual(code("REWARD_COLLAPSE"));
    await expect(run).rejects.toThrow("3 steps in a row; the best policy was that after step 0 (step 2)");
  });

  it("before it starts, without examples or with groups larger than the engine takes", async () => {
    await expect(train({}, { examples: [] })).rejects.toEqual(code("DATA_INVALID"));
    await expect(train({ groupSize: 65 })).rejects.toEqual(code("CONFIG_INVALID"));
  });
});
