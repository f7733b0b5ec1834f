import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Loss, OptimizerSettings, TrainingGroup } from "../../trainer/engines/engine.ts";
import { openTinkerEngine, type TinkerEngine } from "../../trainer/engines/tinker/engine.ts";
import { tinkerProfile } from "../../trainer/engines/tinker/profiles.ts";
import { openTextCodec } from "../../trainer/text-codec.ts";
import { openVllmServer, type VllmServer } from "../../trainer/vllm/server.ts";
import { unpackWeights } from "../../trainer/vllm/unpack.ts";
import { vllmWeightSync } from "../../trainer/vllm/weight-sync.ts";
import { describeWithEngines, engineServers } from "./servers.ts";

const PROMPT = [1, 117, 115, 101, 114, 10];
const OTHER_PROMPT = [72, 105, 300, 301];
/** Two float32 implementations of one forward pass. */
const TOLERANCE = 2e-4;
const CLIPPED: Loss = { kind: "clipped-surrogate", clipLow: 0.2, clipHigh: 0.2 };
const CROSS_ENTROPY: Loss = { kind: "cross-entropy" };
const ADAM: OptimizerSettings = {
  learningRate: 1e-2,
  beta1: 0.9,
  beta2: 0.99,
  epsilon: 1e-8,
  weightDecay: 0,
  maxGradNorm: 1e9,
};
/** Measures a gradient and leaves the weights as they are. */
const STILL: OptimizerSettings = { ...ADAM, learningRate: 0 };

describeWithEngines("SkyRL's JAX engine behind the Tinker protocol", () => {
  let engine: TinkerEngine;
  let vllm: VllmServer;
  /** A completion of either prompt, sampled by the engine. */
  let tokens: readonly number[];
  let otherTokens: readonly number[];
  const folder = mkdtempSync(join(tmpdir(), "rootstep-skyrl-"));

  const open = (changes: object = {}) => {
    const { skyrl, model } = engineServers();
    return openTinkerEngine({
      address: { url: skyrl },
      profile: tinkerProfile("skyrl-jax"),
      baseModel: model,
      codec: openTextCodec({ folder: model, maxPrompt: 24 }),
      limits: { maxPrompt: 24, maxCompletion: 8, groupSize: 8 },
      lora: { rank: 4, seed: 1 },
      journal: join(folder, "journal.jsonl"),
      ...changes,
    });
  };

  beforeAll(async () => {
    engine = await open();
    vllm = openVllmServer({ url: engineServers().vllm });
    const [ours, others] = await engine.sample({
      prompts: [PROMPT, OTHER_PROMPT],
      n: 1,
      temperature: 1,
      seed: "start",
    });
    tokens = ours?.[0]?.tokens ?? [];
    otherTokens = others?.[0]?.tokens ?? [];
  }, 600_000);
  afterAll(async () => {
    await engine?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const group = (
    prompt: readonly number[],
    completion: readonly number[],
    part: { weight: number | readonly number[]; advantage: number; oldLogprobs?: readonly number[] },
  ): TrainingGroup => {
    const { weight, advantage, oldLogprobs } = part;
    const weights = completion.map((_, t) => (typeof weight === "number" ? weight : (weight[t] ?? 0)));
    return { prompt, completions: [{ tokens: completion, weights, advantage, ...(oldLogprobs && { oldLogprobs }) }] };
  };
  const logprobsOf = async (prompt: readonly number[], completion: readonly number[]) =>
    (await engine.forward([group(prompt, completion, { weight: 0, advantage: 0 })]))[0]?.[0] ?? [];
  const gradientNorm = async (groups: readonly TrainingGroup[], loss: Loss): Promise<number> => {
    await engine.forwardBackward(groups, loss);
    return (await engine.optimStep(STILL)).gradNorm;
  };
  const expectRatio = (found: number, expected: number): void => {
    expect(Math.abs(found - expected)).toBeLessThanOrEqual(1e-3 * Math.max(expected, 1e-3));
  };

  it("samples groups, the same for the same stream, with log-probabilities that vLLM agrees with", async () => {
    const ask = (seed: string) => engine.sample({ prompts: [PROMPT, OTHER_PROMPT], n: 4, temperature: 1, seed });
    const groups = await ask("a");
    expect(await ask("a")).toEqual(groups);
    expect(await ask("b")).not.toEqual(groups);
    expect(new Set(groups[0]?.map((completion) => completion.tokens.join())).size).toBeGreaterThan(1);
    for (const [p, prompt] of [PROMPT, OTHER_PROMPT].entries()) {
      for (const completion of groups[p] ?? []) {
        expect(completion.logprobs).toHaveLength(completion.tokens.length);
        expect(completion.finishReason === "stop").toBe(completion.tokens.at(-1) === 2);
        const reference = await vllm.promptLogprobs("tiny", [...prompt, ...completion.tokens]);
        const forward = await logprobsOf(prompt, completion.tokens);
        completion.logprobs.forEach((logprob, t) => {
          expect(Math.abs(logprob - (reference[prompt.length - 1 + t] ?? 0))).toBeLessThan(TOLERANCE);
          expect(Math.abs(logprob - (forward[t] ?? 0))).toBeLessThan(TOLERANCE);
        });
      }
    }
  });

  // d/dθ of r·A is A·r·∇logprob; beyond the bound on the side the advantage pushes to, the gradient is 0 (§4.2).
  it("has the gradient of the clipped surrogate that the closed form gives, also at a tighter clip", async () => {
    const logprobs = await logprobsOf(PROMPT, tokens);
    const weight = tokens.map((_, t) => (t === 0 ? 1 : 0));
    const plain = await gradientNorm([group(PROMPT, tokens, { weight, advantage: 1 })], CROSS_ENTROPY);
    expect(plain).toBeGreaterThan(0);
    const at = (ratio: number, advantage: number, clip = 0.2) =>
      gradientNorm(
        [
          group(PROMPT, tokens, {
            weight,
            advantage,
            oldLogprobs: logprobs.map((logprob) => logprob - Math.log(ratio)),
          }),
        ],
        { kind: "clipped-surrogate", clipLow: clip, clipHigh: clip },
      );
    expectRatio((await at(1.1, 1.5)) / plain, 1.65);
    expectRatio((await at(0.95, -1.5)) / plain, 1.425);
    expectRatio((await at(1.3, 1.5)) / plain, 0);
    expectRatio((await at(1.3, -1.5)) / plain, 1.95);
    expectRatio((await at(0.75, 1.5)) / plain, 1.125);
    expectRatio((await at(0.75, -1.5)) / plain, 0);
    // The bound is a setting of each call.
    expectRatio((await at(1.1, 1.5, 0.05)) / plain, 0);
    expectRatio((await at(1.3, 1.5, 0.4)) / plain, 1.95);
  });

  it("sums over tokens and sequences as the weights say, though the server averages", async () => {
    const a = (weight: number, advantage: number, old: readonly number[]) =>
      group(PROMPT, tokens, { weight, advantage, oldLogprobs: old });
    const b = (weight: number, advantage: number, old: readonly number[]) =>
      group(OTHER_PROMPT, otherTokens, { weight, advantage, oldLogprobs: old });
    const [oldA, oldB] = [await logprobsOf(PROMPT, tokens), await logprobsOf(OTHER_PROMPT, otherTokens)];
    const norm = (...groups: TrainingGroup[]) => gradientNorm(groups, CLIPPED);
    const alone = await norm(a(0.1, 1, oldA));
    const other = await norm(b(0.3, 1, oldB));
    expectRatio((await norm(a(0.2, 1, oldA))) / alone, 2);
    expectRatio((await norm(a(0.1, 1, oldA), a(0.1, 1, oldA))) / alone, 2);
    // ‖x+y‖² + ‖x−y‖² = 2‖x‖² + 2‖y‖²: holds only if each part has its own scale.
    const sum = await norm(a(0.1, 1, oldA), b(0.3, 1, oldB));
    const difference = await norm(a(0.1, 1, oldA), b(0.3, -1, oldB));
    expectRatio((sum ** 2 + difference ** 2) / (2 * alone ** 2 + 2 * other ** 2), 1);
    const crossEntropy = await gradientNorm([a(0.1, 9, oldA), b(0.3, -9, oldB)], CROSS_ENTROPY);
    expectRatio(crossEntropy / sum, 1);
    expect(await norm(a(0, 1, oldA))).toBe(0);
  });

  it("returns minus the weighted objective and the log-probabilities before the update", async () => {
    const logprobs = await logprobsOf(PROMPT, tokens);
    const part = { weight: 0.25, advantage: 2, oldLogprobs: logprobs.map((logprob) => logprob + 0.1) };
    const result = await engine.forwardBackward([group(PROMPT, tokens, part)], CLIPPED);
    expect(result.loss).toBeCloseTo(-tokens.length * 0.25 * 2 * Math.exp(-0.1), 4);
    expect(result.logprobs[0]?.[0]).toHaveLength(tokens.length);
    await engine.optimStep(STILL);
  });

  it("learns, and goes on from a saved state as if nothing had happened", async () => {
    const step = async () => {
      await engine.forwardBackward([group(PROMPT, tokens, { weight: 0.1, advantage: 1 })], CROSS_ENTROPY);
      await engine.optimStep(ADAM);
      return logprobsOf(PROMPT, tokens);
    };
    const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
    const before = await logprobsOf(PROMPT, tokens);
    const once = await step();
    expect(sum(once)).toBeGreaterThan(sum(before));
    const state = await engine.exportState();
    const straight = await step();
    await engine.importState(state);
    expect(await logprobsOf(PROMPT, tokens)).toEqual(once);
    expect(await step()).toEqual(straight);
    await engine.importState({ weights: state.weights });
    expect(await logprobsOf(PROMPT, tokens)).toEqual(once);
    // Adam starts afresh: its first step is not its second.
    expect(await step()).not.toEqual(straight);
  });

  it("gives vLLM its adapter: after a sync both agree, after a further step the probe notices", async () => {
    const sequence = [...PROMPT, ...tokens];
    let stale: string | undefined;
    const sync = vllmWeightSync({
      mode: "lora",
      servers: [vllm],
      model: "tiny",
      exportWeights: async (version) => {
        if (stale !== undefined) return stale;
        const target = join(folder, `adapter-${version}`);
        await unpackWeights(await engine.downloadSamplerWeights(), target);
        return target;
      },
      probe: {
        tokens: sequence,
        engineLogprobs: () => logprobsOf(sequence.slice(0, 1), sequence.slice(1)),
      },
      tolerance: TOLERANCE,
    });
    const { probeError } = await sync.push(1);
    expect(Object.values(probeError)[0]).toBeLessThan(TOLERANCE);
    const base = await vllm.promptLogprobs("tiny", sequence);
    const adapted = await vllm.promptLogprobs("policy", sequence);
    expect(Math.max(...adapted.map((logprob, i) => Math.abs(logprob - (base[i] ?? 0))))).toBeGreaterThan(0.05);

    await engine.forwardBackward([group(PROMPT, tokens, { weight: 0.1, advantage: 1 })], CROSS_ENTROPY);
    await engine.optimStep(ADAM);
    stale = join(folder, "adapter-1");
    await expect(sync.push(2)).rejects.toMatchObject({ code: "SYNC_MISMATCH" });
    stale = undefined;
    expect((await sync.push(3)).policyVersion).toBe(3);
    await vllm.unloadLora("policy");
  });

  it("refuses what would poison or confuse the server", async () => {
    await expect(engine.forward([group([5000], tokens, { weight: 0, advantage: 0 })])).rejects.toMatchObject({
      code: "ENGINE_FAILED",
      what: expect.stringContaining("vocabulary"),
    });
    const one = [group(PROMPT, tokens, { weight: 0.1, advantage: 1, oldLogprobs: tokens.map(() => -1) })];
    await engine.forwardBackward(one, CLIPPED);
    await expect(engine.forwardBackward(one, CLIPPED)).rejects.toMatchObject({
      what: expect.stringContaining("one forwardBackward per optimiser step"),
    });
    await engine.optimStep(STILL);
    await expect(open({ baseModel: "no-such-model" })).rejects.toMatchObject({
      what: expect.stringContaining("not no-such-model"),
    });
    // The wrong profile: this server takes no JSON there.
    const json = await open({
      profile: { ...tinkerProfile("skyrl-jax"), encoding: tinkerProfile("verl-tinker").encoding },
      journal: undefined,
    });
    await expect(json.forward([group(PROMPT, tokens, { weight: 0, advantage: 0 })])).rejects.toThrow();
    await json.close();
  });
});
