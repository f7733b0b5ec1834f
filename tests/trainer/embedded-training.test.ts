import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { shippedPath } from "../../src/package-root.ts";
import { trainConfigSchema } from "../../trainer/config.ts";
import { buildExamples } from "../../trainer/dataset.ts";
import { embeddedCodec } from "../../trainer/engines/embedded/codec.ts";
import { openEmbeddedEngine } from "../../trainer/engines/embedded/engine.ts";
import { planTraining } from "../../trainer/plan.ts";
import { sftConfigSchema, trainSft } from "../../trainer/sft.ts";
import { type TrainingEvent, trainRun } from "../../trainer/train-run.ts";
import { labelledRuns } from "./embedded/support.ts";

const labelled = labelledRuns("embedded training", 12);
const { examples, refused } = buildExamples(labelled, embeddedCodec, {
  labels: ["injection"],
  maxPrompt: 48,
  withReference: true,
});

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "rootstep-embedded-"));
});
afterAll(() => rm(root, { recursive: true }));

/** Aborts after so many metrics. */
function abortAfter(steps: number) {
  const controller = new AbortController();
  let done = 0;
  const onMetric = () => {
    if (++done === steps) controller.abort();
  };
  return { signal: controller.signal, onMetric };
}

async function expectSameFiles(one: string, other: string, files: readonly string[]): Promise<void> {
  for (const file of files) {
    const same = (await readFile(join(root, one, file))).equals(await readFile(join(root, other, file)));
    expect([file, same]).toEqual([file, true]);
  }
}

describe("training the embedded tracer", () => {
  it("takes every generated run as an example, with the prompt of the full record", () => {
    expect(refused).toEqual([]);
    expect(examples.map(({ prompt }) => prompt)).toEqual(labelled.map((run) => embeddedCodec.encodePrompt(run)));
  });

  it("by GRPO is interrupted and resumed bit for bit, with sampler and trainer in agreement", async () => {
    const config = trainConfigSchema.parse({
      steps: 4,
      promptsPerStep: 6,
      groupSize: 8,
      learningRate: 3e-4,
      deadGroups: "resample",
      evalEvery: 2,
      checkpointEvery: 3,
    });
    const events: TrainingEvent[] = [];
    const run = async (folder: string, more: Partial<Parameters<typeof trainRun>[0]> = {}) => {
      const engine = await openEmbeddedEngine();
      const data = { examples: examples.slice(0, 9), heldOut: examples.slice(9) };
      const onEvent = (event: TrainingEvent) => events.push(event);
      try {
        return await trainRun({ config, engine, ...data, folder: join(root, folder), onEvent, ...more });
      } finally {
        await engine.close();
      }
    };
    const final = await run("straight");
    expect(final.policyVersion).toBeGreaterThan(0);
    await expect(run("stopped", abortAfter(2))).rejects.toMatchObject({ code: "INTERRUPTED" });
    expect(await run("stopped")).toEqual(final);
    const last = ["state.json", "weights.bin", "optimizer.bin"].map((file) => `checkpoints/step-000004/${file}`);
    await expectSameFiles("stopped", "straight", ["metrics.jsonl", "evaluations.jsonl", ...last]);
    for (const event of events) {
      if (event.kind === "ratio-check") expect(event.stats.std).toBeLessThan(1e-3);
    }
  });

  it("by cross-entropy is interrupted and resumed bit for bit", async () => {
    const config = sftConfigSchema.parse({ steps: 4, batchSize: 6, learningRate: 1e-3, promptLossWeight: 0.3 });
    const run = async (folder: string, more: object = {}) => {
      const engine = await openEmbeddedEngine();
      const target = engine.codec.encodeCompletion;
      try {
        return await trainSft({ config, engine, examples, target, folder: join(root, folder), ...more });
      } finally {
        await engine.close();
      }
    };
    await run("sft-straight");
    await expect(run("sft-stopped", abortAfter(2))).rejects.toMatchObject({ code: "INTERRUPTED" });
    await run("sft-stopped");
    const last = ["state.json", "weights.bin", "optimizer.bin"].map((file) => `checkpoints/step-000004/${file}`);
    await expectSameFiles("sft-stopped", "sft-straight", ["metrics.jsonl", ...last]);
  });

  it("has a shipped configuration whose plan has nothing to warn about but the small data", async () => {
    const yaml = await readFile(shippedPath("configs", "train-embedded.yaml"), "utf8");
    const config = trainConfigSchema.parse(parse(yaml));
    const limits = { maxPrompt: 48, maxCompletion: 32, groupSize: 8 };
    const { warnings, updates } = planTraining(config, { examples, heldOut: examples }, limits);
    expect(updates).toBe(120);
    expect(warnings).toEqual(["a batch of 32 prompts holds some of the 12 examples twice"]);
  });
});
