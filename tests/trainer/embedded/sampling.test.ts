import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { shippedPath } from "../../../src/package-root.ts";
import { type EmbeddedEngine, openEmbeddedEngine } from "../../../trainer/engines/embedded/engine.ts";
import { readManifest } from "../../../trainer/engines/embedded/manifest.ts";
import { TOKEN } from "../../../trainer/engines/embedded/vocabulary.ts";
import { failedRuns, formulaWeights } from "./support.ts";

let engine: EmbeddedEngine;
let prompts: (readonly number[])[];

beforeAll(async () => {
  const { model } = await readManifest(shippedPath("data", "embedded"));
  // Not the shipped policy: it is nearly certain of most tokens, so its samples would hardly show a difference.
  engine = await openEmbeddedEngine({ weights: formulaWeights(model).map((w) => w * 0.8) });
  prompts = failedRuns("sampling", 33).map((run) => engine.codec.encodePrompt(run.trajectory));
});
afterAll(() => engine.close());

const rollout = (from: readonly (readonly number[])[], n: number, seed = "a") =>
  engine.sample({ prompts: from, n, temperature: 1, seed });

describe("named streams", () => {
  test.each([1, 8])("what is sampled does not depend on the batching (n = %i)", async (n) => {
    const all = await rollout(prompts, n);
    for (const count of [1, 2, 7]) expect(await rollout(prompts.slice(0, count), n)).toEqual(all.slice(0, count));
  });

  test("a smaller group is the beginning of a larger one", async () => {
    const all = await rollout(prompts.slice(0, 5), 8);
    expect(await rollout(prompts.slice(0, 5), 3)).toEqual(all.map((group) => group.slice(0, 3)));
  });

  test("what is sampled does not depend on the number of threads", async () => {
    const { model } = engine;
    const threaded = await openEmbeddedEngine({ weights: formulaWeights(model).map((w) => w * 0.8), threads: 2 });
    const request = { prompts: prompts.slice(0, 8), n: 8, temperature: 1, seed: "a" };
    const [one, two] = [await engine.sample(request), await threaded.sample(request)];
    await threaded.close();
    expect(two.map((group) => group.map(({ tokens }) => tokens))).toEqual(
      one.map((group) => group.map(({ tokens }) => tokens)),
    );
  });

  test("another seed, another prompt position and another member of the group draw otherwise", async () => {
    const [prompt] = prompts;
    const [first, second] = await rollout([prompt!, prompt!], 8);
    const [other] = await rollout([prompt!], 8, "b");
    const texts = [...first!, ...second!, ...other!].map(({ tokens }) => tokens.join());
    expect(new Set(texts).size).toBe(24);
  });

  test("every prompt of a request has its own stream, over the borders of batches too", async () => {
    const groups = await rollout(
      prompts.map(() => prompts[0]!),
      8,
    );
    expect(new Set(groups.map((group) => group.map(({ tokens }) => tokens.join()).join("|"))).size).toBe(
      prompts.length,
    );
  });

  test("samples follow the policy: the frequency of the first token is its probability", async () => {
    const [prompt] = prompts;
    const many = (
      await rollout(
        Array.from({ length: 32 }, () => prompt!),
        8,
      )
    ).flat();
    const first = new Map<number, { count: number; probability: number }>();
    for (const { tokens, logprobs } of many) {
      const seen = first.get(tokens[0]!) ?? { count: 0, probability: Math.exp(logprobs[0]!) };
      first.set(tokens[0]!, { ...seen, count: seen.count + 1 });
    }
    for (const { count, probability } of first.values()) {
      const deviation = Math.sqrt(many.length * probability * (1 - probability));
      expect(Math.abs(count - many.length * probability)).toBeLessThan(5 * deviation + 1);
    }
  });
});

describe("shape of completions", () => {
  test("temperature 0 takes the most likely token, whatever the seed", async () => {
    const greedy = (seed: string) => engine.sample({ prompts: prompts.slice(0, 6), n: 1, temperature: 0, seed });
    expect(await greedy("a")).toEqual(await greedy("b"));
  });

  test("a completion ends with its end token or at the limit, and carries one log-probability per token", async () => {
    for (const { tokens, logprobs, finishReason } of (await rollout(prompts.slice(0, 8), 8)).flat()) {
      expect(logprobs).toHaveLength(tokens.length);
      expect(logprobs.every((x) => x <= 0 && Number.isFinite(x))).toBe(true);
      expect(tokens.indexOf(TOKEN.end)).toBe(finishReason === "stop" ? tokens.length - 1 : -1);
      if (finishReason === "length") expect(tokens).toHaveLength(engine.limits.maxCompletion);
    }
  });

  test("an aborted request ends as an interruption", async () => {
    const request = { prompts, n: 8, temperature: 1, seed: "a", signal: AbortSignal.abort() };
    await expect(engine.sample(request)).rejects.toMatchObject({ code: "INTERRUPTED" });
  });

  test.each([
    ["an empty prompt", [[]], 8],
    ["a prompt that is too long", [Array.from({ length: 49 }, () => 20)], 8],
    ["a token of another vocabulary", [[160]], 8],
    ["a group that is too large", [[20]], 9],
  ])("%s is refused", async (_, wrong, n) => {
    await expect(rollout(wrong, n)).rejects.toMatchObject({ code: "ENGINE_FAILED", side: "engine" });
  });
});
