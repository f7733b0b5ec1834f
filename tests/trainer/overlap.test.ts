import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RootstepError } from "../../src/errors.ts";
import { stream } from "../../src/random.ts";
import { trainConfigSchema } from "../../trainer/config.ts";
import { buildExamples } from "../../trainer/dataset.ts";
import { openEmbeddedEngine } from "../../trainer/engines/embedded/engine.ts";
import type { RolloutSource, SampleRequest, TrainingEngine, TrainingGroup } from "../../trainer/engines/engine.ts";
import type { Metric } from "../../trainer/metrics.ts";
import { type TrainingEvent, type TrainRunOptions, trainRun } from "../../trainer/train-run.ts";
import { labelledRuns } from "./embedded/support.ts";
import { createTabularEngine, faultyRun, tabularCodec } from "./tabular-engine.ts";

const SEED = 20_26_11;
const { examples } = buildExamples(
  Array.from({ length: 10 }, (_, i) => faultyRun(`run-${i}`, i % 3)),
  tabularCodec,
  { labels: ["injection"], maxPrompt: 1, withReference: true },
);
const settings = {
  steps: 12,
  promptsPerStep: 4,
  groupSize: 4,
  learningRate: 0.05,
  minibatches: 2,
  deadGroups: "resample",
  checkpointEvery: 4,
  evalEvery: 5,
} as const;

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "rootstep-overlap-"));
});
afterAll(() => rm(root, { recursive: true }));

const configWith = (k: number, more: object = {}) =>
  trainConfigSchema.parse({ ...settings, ...(k > 0 && { overlap: { staleness: k } }), ...more });

function run(folder: string, k: number, more: Partial<TrainRunOptions> = {}) {
  const data = { engine: createTabularEngine(), examples, heldOut: examples.slice(0, 3) };
  return trainRun({ config: configWith(k), ...data, folder: join(root, folder), ...more });
}

/** Every file of a run that its settings decide, as hexadecimal text. */
async function contents(folder: string): Promise<ReadonlyMap<string, string>> {
  const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !["timings.jsonl", "events.jsonl"].includes(entry.name));
  const read = files.map(async (entry) => {
    const path = join(entry.parentPath, entry.name);
    return [path.slice(join(root, folder).length), (await readFile(path)).toString("hex")] as const;
  });
  return new Map((await Promise.all(read)).sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function metricsOf(folder: string, k: number, more: Partial<TrainRunOptions> = {}): Promise<Metric[]> {
  const metrics: Metric[] = [];
  await run(folder, k, { ...more, onMetric: (metric) => metrics.push(metric) });
  return metrics;
}

async function stopAfter(folder: string, k: number, steps: number, more: Partial<TrainRunOptions> = {}): Promise<void> {
  const controller = new AbortController();
  const onMetric = ({ step }: Metric) => {
    if (step + 1 === steps) controller.abort();
  };
  const stopped = run(folder, k, { ...more, signal: controller.signal, onMetric });
  await expect(stopped).rejects.toMatchObject({ code: "INTERRUPTED" });
}

/** The engine with its samplers replaced, the frozen ones too. */
function withSampler(
  engine: TrainingEngine,
  sample: (request: SampleRequest, honest: RolloutSource["sample"]) => ReturnType<RolloutSource["sample"]>,
): TrainingEngine {
  return {
    ...engine,
    sample: (request) => sample(request, engine.sample),
    frozenSampler: async () => {
      const frozen = await engine.frozenSampler?.();
      if (frozen === undefined) throw new Error("the engine has no frozen sampler");
      return { id: frozen.id, sample: (request) => sample(request, frozen.sample) };
    },
  };
}

const isRollout = ({ temperature }: SampleRequest): boolean => temperature === 1;
const stepIn = ({ seed }: SampleRequest): number => Number(JSON.parse(seed)[2]);

describe("overlap of rollouts and updates", () => {
  it("samples the next batch while a step updates", async () => {
    const engine = createTabularEngine();
    let updated = () => {};
    const firstUpdate = new Promise<void>((resolve) => {
      updated = resolve;
    });
    // Without overlap this waits for ever: batch 1 is only given once step 0 updates, and then step 0 goes on without it.
    let batchOneAsked = false;
    const waiting = withSampler(engine, async (request, honest) => {
      if (isRollout(request) && stepIn(request) === 1) {
        batchOneAsked = true;
        await firstUpdate;
      }
      return honest(request);
    });
    const subject: TrainingEngine = {
      ...waiting,
      optimStep: async (adam) => {
        await expect.poll(() => batchOneAsked).toBe(true);
        updated();
        return engine.optimStep(adam);
      },
    };
    await run("beside", 1, { engine: subject });
  });

  for (const [k, steps] of [
    [1, [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]],
    // Evaluations after 5 and 10 steps bring new weights too.
    [3, [0, 1, 2, 3, 1, 2, 1, 1, 2, 3, 1, 1]],
  ] as const) {
    it(`records how stale each batch is (at most ${k})`, async () => {
      const metrics = await metricsOf(`stale-${k}`, k);
      expect(metrics.map(({ staleness }) => staleness.steps)).toEqual(steps);
      let version = 0;
      const versions: number[] = [];
      for (const { updates } of metrics) {
        versions.push(version);
        version += updates;
      }
      expect(metrics.map(({ policyVersion }) => policyVersion)).toEqual(steps.map((behind, s) => versions[s - behind]));
      metrics.forEach(({ staleness, policyVersion }, s) => {
        expect(policyVersion + staleness.versions).toBe(versions[s]);
      });
      // The policy has moved since: not even the first minibatch begins at ratio 1.
      expect(metrics.slice(1).every(({ ratio }) => ratio === null || ratio.std > 0)).toBe(true);
    });
  }

  it("trains on the samples and log-probabilities of the policy that sampled, not of the one that is updated", async () => {
    const engine = createTabularEngine();
    const asked = new Map<number, SampleRequest>();
    const trained: (readonly TrainingGroup[])[] = [];
    const spy: TrainingEngine = {
      ...withSampler(engine, (request, honest) => {
        if (isRollout(request)) asked.set(stepIn(request), request);
        return honest(request);
      }),
      forwardBackward: (groups, loss) => {
        trained.push(groups);
        return engine.forwardBackward(groups, loss);
      },
    };
    await run("behaviour", 1, { engine: spy, config: configWith(1, { steps: 2, minibatches: 1, deadGroups: "keep" }) });
    const request = asked.get(1);
    if (request === undefined || trained.length !== 2) throw new Error("step 1 was not sampled and trained");
    // What the untrained policy would have answered, asked on an engine of its own.
    const untrained = await createTabularEngine().sample(request);
    const byPrompt = (rows: readonly (readonly [unknown, unknown])[]) => rows.map((row) => JSON.stringify(row)).sort();
    expect(
      byPrompt(
        (trained[1] ?? []).flatMap(({ completions }) =>
          completions.map((each) => [each.tokens, each.oldLogprobs] as const),
        ),
      ),
    ).toEqual(byPrompt(untrained.flat().map(({ tokens, logprobs }) => [tokens, logprobs] as const)));
  });

  it(`ends the same whoever is faster (seed ${SEED})`, async () => {
    await run("even", 2);
    const random = stream(SEED, "delays");
    const slow = async (longest: number) => delay(longest * random.next());
    for (const [name, sampling, updating] of [
      ["slow-sampler", 12, 0],
      ["slow-engine", 0, 12],
      ["both-slow", 8, 8],
    ] as const) {
      const engine = createTabularEngine();
      const uneven: TrainingEngine = {
        ...withSampler(engine, async (request, honest) => {
          await slow(sampling);
          const answer = await honest(request);
          await slow(sampling);
          return answer;
        }),
        optimStep: async (adam) => {
          await slow(updating);
          return engine.optimStep(adam);
        },
      };
      await run(name, 2, { engine: uneven });
      expect(await contents(name)).toEqual(await contents("even"));
    }
  });

  it("still learns: from chance to nearly every step found", async () => {
    const config = configWith(2, { steps: 60, learningRate: 0.1, promptsPerStep: 6, groupSize: 8, evalEvery: 20 });
    const metrics = await metricsOf("learns", 2, { config });
    const mean = (part: readonly Metric[]) => part.reduce((sum, { reward }) => sum + reward.mean, 0) / part.length;
    expect(mean(metrics.slice(0, 3))).toBeLessThan(0.5);
    expect(mean(metrics.slice(-5))).toBeGreaterThan(0.9);
  });

  it("compares sampler and trainer on the first batch, which is fresh; a resumed run says that it cannot", async () => {
    const events: TrainingEvent[] = [];
    const onEvent = (event: TrainingEvent) => events.push(event);
    await stopAfter("checked", 1, 2, { onEvent });
    expect(events.filter(({ kind }) => kind === "ratio-check")).toHaveLength(1);
    events.length = 0;
    await run("checked", 1, { onEvent });
    expect(events.filter(({ kind }) => kind.startsWith("ratio-check"))).toMatchObject([
      { kind: "ratio-check-skipped" },
    ]);
  });
});

it("the embedded engine's frozen sampler keeps its weights while the engine trains on", async () => {
  const engine = await openEmbeddedEngine();
  try {
    const prompts = labelledRuns("frozen", 2).map((run) => engine.codec.encodePrompt(run));
    const request: SampleRequest = { prompts, n: 2, temperature: 1, seed: "frozen" };
    const before = await engine.sample(request);
    const frozen = await engine.frozenSampler?.();
    const completions = (before[0] ?? []).map(({ tokens, logprobs }, g) => {
      return { tokens, weights: tokens.map(() => 1), advantage: 1 - 2 * g, oldLogprobs: logprobs };
    });
    const loss = { kind: "clipped-surrogate", clipLow: 0.2, clipHigh: 0.2 } as const;
    await engine.forwardBackward([{ prompt: prompts[0] ?? [], completions }], loss);
    const adam = { beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 };
    await engine.optimStep({ ...adam, learningRate: 1e-2 });
    expect(await frozen?.sample(request)).toEqual(before);
    expect(await engine.sample(request)).not.toEqual(before);
  } finally {
    await engine.close();
  }
});

describe("a run with overlap that was stopped", () => {
  for (const k of [1, 2, 3]) {
    it(`finishes byte for byte like an undisturbed one (staleness ${k})`, async () => {
      await run(`undisturbed-${k}`, k);
      const undisturbed = await contents(`undisturbed-${k}`);
      for (const steps of [1, 2, 3, 6, 9, 11]) {
        const folder = `stopped-${k}-${steps}`;
        await stopAfter(folder, k, steps);
        await run(folder, k);
        expect(await contents(folder)).toEqual(undisturbed);
      }
      for (const steps of [2, 3, 7, 10]) await stopAfter(`often-${k}`, k, steps);
      await run(`often-${k}`, k);
      expect(await contents(`often-${k}`)).toEqual(undisturbed);
    });
  }

  it("holds what was sampled ahead in its checkpoint, and refuses one where it is damaged", async () => {
    await stopAfter("held", 2, 6);
    const checkpoint = join(root, "held/checkpoints/step-000006");
    const held: unknown = JSON.parse(await readFile(join(checkpoint, "rollouts.json"), "utf8"));
    // After 6 steps the sampler gets new weights: only the next batch is there, by the policy after 5.
    expect(held).toMatchObject([{ step: 6, sampledAfter: 5 }]);
    await rm(join(checkpoint, "rollouts.json"));
    const events: TrainingEvent[] = [];
    await run("held", 2, { onEvent: (event) => events.push(event) });
    expect(events[0]).toMatchObject({ kind: "corrupt-checkpoint", error: { code: "CHECKPOINT_CORRUPT" } });
  });

  it("ends the same on the embedded engine, bit for bit", async () => {
    const engine = await openEmbeddedEngine();
    try {
      const built = buildExamples(labelledRuns("overlap", 8), engine.codec, {
        labels: ["injection"],
        maxPrompt: engine.limits.maxPrompt,
        withReference: true,
      }).examples;
      const start = await engine.exportState();
      const config = configWith(2, {
        steps: 4,
        learningRate: 1e-3,
        deadGroups: "keep",
        checkpointEvery: 9,
        evalEvery: 9,
      });
      const data = { config, engine, examples: built.slice(0, 6), heldOut: built.slice(6) };
      const fresh = async (folder: string, stop?: number) => {
        await engine.importState(start);
        await (stop === undefined ? run(folder, 2, data) : stopAfter(folder, 2, stop, data));
      };
      await fresh("embedded");
      const undisturbed = await contents("embedded");
      for (const steps of [1, 2, 3]) {
        await fresh(`embedded-${steps}`, steps);
        await fresh(`embedded-${steps}`);
        expect(await contents(`embedded-${steps}`)).toEqual(undisturbed);
      }
      expect(JSON.stringify([...undisturbed])).not.toContain("rollouts.json");
    } finally {
      await engine.close();
    }
  }, 120_000);
});

describe("a failure while both go on", () => {
  it("of the sampler ends the run with the sampler's error, and the rest of it is the undisturbed run's", async () => {
    await run("whole", 1);
    const engine = createTabularEngine();
    const failing = withSampler(engine, (request, honest) => {
      if (isRollout(request) && stepIn(request) === 6) throw new RootstepError("MODEL_UNREACHABLE", { what: "gone" });
      return honest(request);
    });
    await expect(run("sampler-fails", 1, { engine: failing })).rejects.toMatchObject({ code: "MODEL_UNREACHABLE" });
    await run("sampler-fails", 1);
    expect(await contents("sampler-fails")).toEqual(await contents("whole"));
  });

  it("of the engine ends what is being sampled, and nothing runs on after it", async () => {
    const engine = createTabularEngine();
    let inFlight = 0;
    const hanging = withSampler(engine, async (request, honest) => {
      if (!isRollout(request) || stepIn(request) < 2) return honest(request);
      inFlight++;
      try {
        await new Promise((_, reject) =>
          request.signal?.addEventListener("abort", () => reject(request.signal?.reason)),
        );
        return [];
      } finally {
        inFlight--;
      }
    });
    const broken: TrainingEngine = {
      ...hanging,
      optimStep: async (adam) => {
        if (inFlight > 0) throw new Error("out of memory");
        return engine.optimStep(adam);
      },
    };
    const failed = run("engine-fails", 1, { engine: broken });
    await expect(failed).rejects.toThrow("optimStep failed: out of memory");
    expect(inFlight).toBe(0);
  });
});

describe("a sampler apart from the engine, with overlap", () => {
  function server(engine: TrainingEngine, serve: (version: number) => number = (version) => version) {
    const copy = createTabularEngine();
    const versions: number[] = [];
    let served = 0;
    let busy = 0;
    const rollouts: RolloutSource = {
      id: "server",
      sample: async (request) => {
        busy++;
        await delay(1);
        const groups = await copy.sample(request);
        busy--;
        return groups.map((group) => group.map((completion) => ({ ...completion, policyVersion: serve(served) })));
      },
    };
    const sync = async (version: number) => {
      expect(busy).toBe(0);
      versions.push(version);
      served = version;
      await copy.importState(await engine.exportState());
    };
    return { rollouts, sync, versions };
  }

  it("gets new weights at sync points only, never while it samples, and ends as the engine's own sampler would", async () => {
    const engine = createTabularEngine();
    const { rollouts, sync, versions } = server(engine);
    const apart = await metricsOf("apart", 3, { engine, rollouts, sync });
    const after = (steps: number) => apart.slice(0, steps).reduce((sum, { updates }) => sum + updates, 0);
    expect(versions).toEqual([0, 3, 5, 6, 9, 10, 12].map(after));
    const together = await metricsOf("together", 3);
    expect(apart).toEqual(together);
  });

  it("is refused where it samples another version than the schedule says", async () => {
    const engine = createTabularEngine();
    const lagging = server(engine, (version) => Math.max(0, version - 1));
    await expect(run("lagging", 1, { engine, ...lagging })).rejects.toMatchObject({
      code: "SYNC_MISMATCH",
      what: "version 1 of the policy sampled where version 2 should have",
    });
  });
});

describe("overlap is refused", () => {
  it("where the engine samples from the weights it trains alone", async () => {
    const { frozenSampler: _, ...engine } = createTabularEngine();
    await expect(run("refused", 1, { engine })).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      where: "overlap",
      hint: expect.stringContaining("sampling.from: vllm"),
    });
  });

  it("where the engine is to compute old log-probabilities that it cannot know any more", async () => {
    const config = configWith(1, { oldLogprobs: "engine" });
    await expect(run("refused-too", 1, { config })).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      where: "oldLogprobs",
    });
  });

  it("with a bound below one step", () => {
    expect(trainConfigSchema.safeParse({ steps: 1, overlap: { staleness: 0 } }).success).toBe(false);
  });
});
