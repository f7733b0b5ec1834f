import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { loadTrajectoryFiles } from "../../src/evaluation/datasets.ts";
import { shippedPath } from "../../src/package-root.ts";
import { loadConfig } from "../../src/runs/config.ts";
import { type TrainConfig, trainConfigSchema } from "../../trainer/config.ts";
import { buildExamples } from "../../trainer/dataset.ts";
import type { Metric } from "../../trainer/metrics.ts";
import { describeEngine, openEngine } from "../../trainer/open-engine.ts";
import { trainRun } from "../../trainer/train-run.ts";
import type { SyncReport } from "../../trainer/vllm/weight-sync.ts";
import { describeWithEngines, engineServers } from "./servers.ts";

// Logs that the tiny tokenizer can write in so short a prompt.
const LOGS = [2, 115, 75, 38, 42, 65].map((n) =>
  shippedPath("data", "who_and_when", "Algorithm-Generated", `${n}.json`),
);

describeWithEngines("GRPO with vLLM rollouts and SkyRL's engine", () => {
  const folder = mkdtempSync(join(tmpdir(), "rootstep-grpo-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const configured = (): TrainConfig => {
    const { vllm, skyrl, model } = engineServers();
    return loadConfig(trainConfigSchema, {
      verb: "train",
      file: shippedPath("configs", "tiny-cpu.yaml"),
      env: {},
      flags: {
        engine: { baseModel: model, modelFolder: model },
        servers: { engine: skyrl.href, rollouts: [vllm.href] },
      },
    });
  };

  async function train(config: TrainConfig, run: { stopAfter?: number; metrics: Metric[]; syncs: SyncReport[] }) {
    const { codec, limits } = await describeEngine(config.engine);
    const loaded = await loadTrajectoryFiles(LOGS);
    const { examples, refused } = buildExamples(
      loaded.items.map((item) => item.trajectory),
      codec,
      { ...config, maxPrompt: limits.maxPrompt },
    );
    expect(refused).toEqual([]);
    const interrupt = new AbortController();
    const opened = await openEngine({ config, environment: {}, folder, onSync: (report) => run.syncs.push(report) });
    try {
      return await trainRun({
        config,
        engine: opened.engine,
        ...(opened.rollouts && { rollouts: opened.rollouts }),
        ...(opened.sync && { sync: opened.sync }),
        examples: examples.slice(1),
        heldOut: examples.slice(0, 1),
        folder,
        signal: interrupt.signal,
        onMetric: (metric) => {
          run.metrics.push(metric);
          if (metric.step + 1 === run.stopAfter) interrupt.abort();
        },
      });
    } finally {
      await opened.close();
    }
  }

  it("runs 10 steps, interrupted and resumed once, and keeps every invariant", async () => {
    const config = configured();
    const metrics: Metric[] = [];
    const syncs: SyncReport[] = [];
    await expect(train(config, { stopAfter: 4, metrics, syncs })).rejects.toMatchObject({ code: "INTERRUPTED" });
    const state = await train(config, { metrics, syncs });
    expect(state.step).toBe(10);

    const onDisk = readFileSync(join(folder, "metrics.jsonl"), "utf8").trim().split("\n");
    expect(onDisk.map((line) => JSON.parse(line))).toEqual(JSON.parse(JSON.stringify(metrics)));
    expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for (const metric of metrics) {
      // Unchanged weights, two programs: the sampler's probabilities are the engine's.
      if (metric.trainedGroups > 0) expect(Math.abs((metric.samplerRatio?.mean ?? 0) - 1)).toBeLessThan(0.02);
      expect(metric.groups).toBe(config.promptsPerStep);
      expect(metric.trainedGroups).toBe(metric.groups - metric.deadGroups);
    }
    // Every update has a version of its own, and each was brought to vLLM and proved there.
    const versions = syncs.map(({ policyVersion }) => policyVersion);
    expect(versions).toEqual([...versions].sort((a, b) => a - b));
    expect(new Set(versions).size).toBeGreaterThanOrEqual(5);
    expect(versions.at(-1)).toBe(state.policyVersion);
    for (const { probeError } of syncs) expect(Math.max(...Object.values(probeError))).toBeLessThan(1e-3);
    // The second minibatch of a step meets moved weights: its ratios leave 1 and some the clip.
    expect(metrics.some(({ ratio }) => (ratio?.std ?? 0) > 0.01)).toBe(true);
    expect(metrics.some(({ clipFraction }) => (clipFraction ?? 0) > 0)).toBe(true);
    expect(metrics.every(({ gradNorm }) => gradNorm === null || gradNorm > 0)).toBe(true);
  }, 1_200_000);
});
