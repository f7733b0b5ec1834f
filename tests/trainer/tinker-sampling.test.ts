import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type TrainConfig, trainConfigSchema } from "../../trainer/config.ts";
import { buildExamples } from "../../trainer/dataset.ts";
import type { SampleRequest } from "../../trainer/engines/engine.ts";
import type { TinkerEngine } from "../../trainer/engines/tinker/engine.ts";
import { tinkerProfile } from "../../trainer/engines/tinker/profiles.ts";
import type { Metric } from "../../trainer/metrics.ts";
import { trainRun } from "../../trainer/train-run.ts";
import { labelledRuns } from "./embedded/support.ts";
import { openServed, servedCodec, servedModel, serveEmbedded } from "./tinker-client.ts";
import type { Fault, ServedCall, TinkerServer } from "./tinker-server.ts";

const { examples } = buildExamples(labelledRuns("tinker sampling", 8), servedCodec, {
  labels: ["injection"],
  maxPrompt: servedModel.maxPrompt + 1,
  withReference: true,
});
const prompts = examples.slice(0, 3).map(({ prompt }) => prompt);
const request: SampleRequest = { prompts, n: 2, temperature: 1, seed: "sampling" };
const ADAM = { learningRate: 1e-3, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 };

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "rootstep-tinker-sampling-"));
});
afterAll(() => rm(root, { recursive: true }));

describe("samples through the Tinker protocol", () => {
  let server: TinkerServer;
  let fault: ((call: ServedCall) => Fault | undefined) | undefined;
  const open: TinkerEngine[] = [];
  const profile = tinkerProfile("hosted");
  const openEngine = async (): Promise<TinkerEngine> => {
    const engine = await openServed(server.url, profile);
    open.push(engine);
    return engine;
  };
  const versionsOf = async (subject: Pick<TinkerEngine, "sample">) => [
    ...new Set((await subject.sample(request)).flat().map(({ policyVersion }) => policyVersion)),
  ];
  /** One optimiser step on a sample of the engine's own. */
  async function update(engine: TinkerEngine): Promise<void> {
    const [[completion] = []] = await engine.sample(request);
    const { tokens = [], logprobs: oldLogprobs = [] } = completion ?? {};
    const trained = { tokens, weights: tokens.map(() => 1), advantage: 1, oldLogprobs };
    const loss = { kind: "clipped-surrogate", clipLow: 0.2, clipHigh: 0.2 } as const;
    await engine.forwardBackward([{ prompt: prompts[0] ?? [], completions: [trained] }], loss);
    await engine.optimStep(ADAM);
  }

  beforeAll(async () => {
    server = await serveEmbedded(profile, { fault: (call) => fault?.(call) });
  });
  afterEach(async () => {
    fault = undefined;
    for (const engine of open.splice(0)) await engine.close();
  });
  afterAll(() => server.close());

  it("carry the number of optimiser steps behind the policy, through a checkpoint and back", async () => {
    const engine = await openEngine();
    expect(await versionsOf(engine)).toEqual([0]);
    await update(engine);
    await update(engine);
    expect(await versionsOf(engine)).toEqual([2]);
    const saved = await engine.exportState();
    await update(engine);
    expect(await versionsOf(engine)).toEqual([3]);
    const other = await openEngine();
    await other.importState(saved);
    expect(await versionsOf(other)).toEqual([2]);
    // Weights without moments are a start: the count begins anew.
    await other.importState({ weights: saved.weights });
    expect(await versionsOf(other)).toEqual([0]);
  });

  it("carry no version after a checkpoint of an older rootstep, which does not say", async () => {
    const engine = await openEngine();
    const saved = await engine.exportState();
    const { path } = JSON.parse(Buffer.from(saved.weights).toString("utf8"));
    const old = Buffer.from(JSON.stringify({ tinker: 1, path }));
    await engine.importState({ weights: old, optimizer: old });
    expect(await versionsOf(engine)).toEqual([undefined]);
  });

  it("of a frozen sampler stay those of its weights while the model trains on", async () => {
    const engine = await openEngine();
    const before = await engine.sample(request);
    const frozen = await engine.frozenSampler?.();
    if (frozen === undefined) throw new Error("the profile has no frozen sampler");
    await update(engine);
    expect(await frozen.sample(request)).toEqual(before);
    expect(await engine.sample(request)).not.toEqual(before);
    expect(await versionsOf(frozen)).toEqual([0]);
  });

  it("are not there for profiles whose servers cannot keep older weights apart", async () => {
    for (const id of ["skyrl-jax", "skyrl-train", "verl-tinker"]) {
      const other = await serveEmbedded(tinkerProfile(id));
      const engine = await openServed(other.url, tinkerProfile(id));
      expect(engine.frozenSampler).toBeUndefined();
      await engine.close();
      await other.close();
    }
  });

  it("end at once when the request is aborted, and leave the session as good as before", async () => {
    const engine = await openEngine();
    const undisturbed = await engine.sample(request);
    const controller = new AbortController();
    let hung = 0;
    fault = ({ at, verb }) => {
      if (at !== "submit" || verb !== "asample") return undefined;
      hung++;
      return { kind: "hang" };
    };
    const aborted = engine.sample({ ...request, signal: controller.signal });
    await expect.poll(() => hung).toBeGreaterThan(0);
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ code: "INTERRUPTED" });
    fault = undefined;
    await expect(engine.sample({ ...request, signal: controller.signal })).rejects.toMatchObject({
      code: "INTERRUPTED",
    });
    expect(await engine.sample(request)).toEqual(undisturbed);
  });

  it("end with the first failure: what is still in flight is given up", async () => {
    const engine = await openEngine();
    let asked = 0;
    fault = ({ at, verb }) => {
      if (at !== "submit" || verb !== "asample") return undefined;
      asked++;
      return asked === 1 ? { kind: "hang" } : { kind: "answer", status: 422, body: { detail: "prompt too long" } };
    };
    await expect(engine.sample(request)).rejects.toMatchObject({
      code: "ENGINE_FAILED",
      what: expect.stringContaining("prompt too long"),
    });
  });

  it("with overlap are those of the schedule, and a stopped run ends like an undisturbed one", async () => {
    const config: TrainConfig = trainConfigSchema.parse({
      steps: 4,
      promptsPerStep: 4,
      groupSize: 4,
      learningRate: 1e-3,
      deadGroups: "keep",
      checkpointEvery: 9,
      evalEvery: 9,
      overlap: { staleness: 2 },
    });
    const train = async (folder: string, stopAfter?: number): Promise<void> => {
      const controller = new AbortController();
      await trainRun({
        config,
        engine: await openEngine(),
        examples: examples.slice(0, 6),
        heldOut: examples.slice(6),
        folder: join(root, folder),
        signal: controller.signal,
        onMetric: ({ step }: Metric) => {
          if (step + 1 === stopAfter) controller.abort();
        },
      });
    };
    const metricsOf = (folder: string) => readFile(join(root, folder, "metrics.jsonl"), "utf8");
    await train("whole");
    const whole = await metricsOf("whole");
    const staleness = whole
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).staleness.steps);
    expect(staleness).toEqual([0, 1, 2, 1]);
    await expect(train("stopped", 1)).rejects.toMatchObject({ code: "INTERRUPTED" });
    await expect(train("stopped", 3)).rejects.toMatchObject({ code: "INTERRUPTED" });
    await train("stopped");
    expect(await metricsOf("stopped")).toBe(whole);
  });
});
