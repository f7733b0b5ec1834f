import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildExamples } from "../../trainer/dataset.ts";
import { evaluateHeldOut } from "../../trainer/held-out.ts";
import { sftConfigSchema, trainSft } from "../../trainer/sft.ts";
import { createTabularEngine, faultyRun, tabularCodec, tabularTarget } from "./tabular-engine.ts";

const { examples } = buildExamples(
  Array.from({ length: 6 }, (_, i) => faultyRun(`run-${i}`, i % 3)),
  tabularCodec,
  { labels: ["injection"], maxPrompt: 1, withReference: true },
);
const config = sftConfigSchema.parse({ steps: 30, batchSize: 4, learningRate: 0.1, checkpointEvery: 10 });

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "rootstep-sft-"));
});
afterAll(() => rm(root, { recursive: true }));

describe("the cross-entropy warm start", () => {
  it("teaches the labelled answers", async () => {
    const engine = createTabularEngine();
    const losses: number[] = [];
    await trainSft({
      config,
      engine,
      examples,
      target: tabularTarget,
      folder: join(root, "teach"),
      onMetric: ({ tokenLoss }) => losses.push(tokenLoss),
    });
    expect(losses).toHaveLength(30);
    expect(losses.at(-1)!).toBeLessThan(losses[0]! / 4);
    const settings = { stepsDone: 30, lambda: 0.5, sigma: 1 };
    expect(await evaluateHeldOut(engine, tabularCodec, examples, settings)).toMatchObject({ stepAccuracy: 1 });
  });

  it("resumes after an abort byte for byte", async () => {
    const at = (folder: string, signal?: AbortSignal, onMetric?: () => void) =>
      trainSft({
        config,
        engine: createTabularEngine(),
        examples,
        target: tabularTarget,
        folder: join(root, folder),
        ...(signal && { signal }),
        ...(onMetric && { onMetric }),
      });
    await at("straight");
    const controller = new AbortController();
    let steps = 0;
    const abortAt13 = () => {
      if (++steps === 13) controller.abort();
    };
    await expect(at("stopped", controller.signal, abortAt13)).rejects.toMatchObject({ code: "INTERRUPTED" });
    await at("stopped");
    for (const file of ["metrics.jsonl", "checkpoints/step-000030/state.json", "checkpoints/step-000030/weights.bin"]) {
      expect(await readFile(join(root, "stopped", file))).toEqual(await readFile(join(root, "straight", file)));
    }
  });

  it("refuses targets the engine cannot take, naming the trajectory", async () => {
    const start = (target: () => number[], folder: string) =>
      trainSft({ config, engine: createTabularEngine(), examples, target, folder: join(root, folder) });
    await expect(start(() => [1, 3, 0, 0], "long")).rejects.toMatchObject({ code: "DATA_INVALID" });
    await expect(start(() => [], "empty")).rejects.toThrow(/trajectory run-\d/);
  });
});
