import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { beforeAll, expect, it } from "vitest";
import { isError } from "../../src/errors.ts";
import type { Completion } from "../../trainer/engines/engine.ts";
import { openTextCodec } from "../../trainer/text-codec.ts";
import { vllmRollouts } from "../../trainer/vllm/rollouts.ts";
import { openVllmServer, type VllmServer } from "../../trainer/vllm/server.ts";
import { vllmWeightSync } from "../../trainer/vllm/weight-sync.ts";
import { describeWithEngines, engineServers } from "./servers.ts";

const PROMPTS = [
  [72, 105, 300],
  [1, 117, 115, 101, 114, 10, 87, 104, 121, 63, 2, 10],
];
/** The tiny model's end token. */
const END = 2;
/** Two float32 implementations of one forward pass. */
const TOLERANCE = 2e-4;

describeWithEngines("vLLM", () => {
  let server: VllmServer;
  const rollouts = (options: { model?: string; maxCompletion?: number } = {}) =>
    vllmRollouts({
      servers: [server],
      model: options.model ?? "tiny",
      maxCompletion: options.maxCompletion ?? 16,
      concurrency: 4,
      attempts: 2,
    });
  const logprobsOf = (tokens: readonly number[]) => server.promptLogprobs("tiny", tokens);

  beforeAll(() => {
    server = openVllmServer({ url: engineServers().vllm });
  });

  it("samples groups by token ids, with a log-probability for every token", async () => {
    const groups = await rollouts().sample({ prompts: PROMPTS, n: 8, temperature: 1, seed: "shape" });
    expect(groups.map((group) => group.length)).toEqual([8, 8]);
    for (const { tokens, logprobs, finishReason } of groups.flat()) {
      expect(logprobs).toHaveLength(tokens.length);
      expect(finishReason === "stop" ? tokens.at(-1) : tokens.length).toBe(finishReason === "stop" ? END : 16);
    }
  });

  it("gives the same samples for the same stream, others for another stream and for another completion", async () => {
    const ask = (seed: string) => rollouts().sample({ prompts: PROMPTS, n: 4, temperature: 1, seed });
    const [first, again, other] = [await ask("a"), await ask("a"), await ask("b")];
    expect(again.map((group) => group.map(({ tokens }) => tokens))).toEqual(
      first.map((group) => group.map(({ tokens }) => tokens)),
    );
    expect(other).not.toEqual(first);
    expect(new Set(first[0]?.map(({ tokens }) => tokens.join())).size).toBe(4);
  });

  it("reports for sampled tokens the log-probabilities it gives them as a prompt", async () => {
    const [group = []] = await rollouts().sample({ prompts: [PROMPTS[1] ?? []], n: 2, temperature: 1, seed: "parity" });
    for (const { tokens, logprobs } of group) {
      const scored = await logprobsOf([...(PROMPTS[1] ?? []), ...tokens]);
      logprobs.forEach((logprob, t) => {
        expect(Math.abs(logprob - (scored[t + (PROMPTS[1]?.length ?? 0) - 1] ?? 0))).toBeLessThan(TOLERANCE);
      });
    }
  });

  it("takes the most likely token at temperature 0", async () => {
    const ask = (seed: string) => rollouts().sample({ prompts: PROMPTS, n: 1, temperature: 0, seed });
    expect((await ask("a")).map(([one]) => one?.tokens)).toEqual((await ask("b")).map(([one]) => one?.tokens));
  });

  it("reads texts with the tokens that the server gives them", async () => {
    const codec = openTextCodec({ folder: engineServers().model, maxPrompt: 256 });
    for (const text of ["Hé, <think>x</think><answer>Ada | 3</answer>", "日本語 \u0000 \n\n end<|im_end|>"]) {
      const answer = await fetch(new URL("/tokenize", engineServers().vllm), {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "tiny", prompt: text, add_special_tokens: false }),
      });
      expect(await answer.json()).toMatchObject({ tokens: codec.encodeText(text) });
    }
  });

  it("says what is wrong with a request", async () => {
    const sample = (changes: object) =>
      server.sample({ model: "tiny", prompt: [65], n: 1, maxTokens: 4, temperature: 1, seed: 1, ...changes });
    await expect(sample({ model: "nobody" })).rejects.toMatchObject({ what: expect.stringContaining("nobody") });
    await expect(sample({ prompt: [70_000] })).rejects.toMatchObject({ what: expect.stringContaining("vocabulary") });
    await expect(sample({ prompt: Array(1100).fill(65) })).rejects.toMatchObject({ code: "MODEL_REFUSED_REQUEST" });
    // The server shortens max_tokens at the end of its context without a word.
    await expect(sample({ prompt: Array(1020).fill(65), maxTokens: 16 })).rejects.toMatchObject({
      code: "ENGINE_FAILED",
      what: expect.stringContaining("end of the server's context"),
    });
  });

  it("lets go of requests that are aborted", async () => {
    const controller = new AbortController();
    const pending = rollouts({ maxCompletion: 400 }).sample({
      prompts: Array(8).fill(PROMPTS[0]),
      n: 8,
      temperature: 1,
      seed: "abort",
      signal: controller.signal,
    });
    const running = async () => (await server.gauges()).running;
    await expect.poll(running, { timeout: 60_000, interval: 50 }).toBeGreaterThan(0);
    controller.abort();
    await expect(pending).rejects.toMatchObject({ code: "INTERRUPTED" });
    await expect.poll(running, { timeout: 60_000, interval: 200 }).toBe(0);
  });

  it("keeps away from a server whose gauges say that others keep it busy, and shares when they are gone", async () => {
    const idle = await idleFront(engineServers().vllm);
    const strangers = new AbortController();
    const ask = async (): Promise<number> => {
      const before = idle.completions();
      const servers = [server, openVllmServer({ url: idle.url })];
      const source = vllmRollouts({ servers, model: "tiny", maxCompletion: 4, concurrency: 4, attempts: 1 });
      await source.sample({ prompts: Array(8).fill(PROMPTS[0]), n: 1, temperature: 1, seed: "share" });
      return idle.completions() - before;
    };
    try {
      const load = { model: "tiny", prompt: PROMPTS[0] ?? [], n: 16, maxTokens: 900, temperature: 1, seed: 3 };
      const strange = server.sample(load, strangers.signal).catch(() => "aborted");
      const running = async () => (await server.gauges()).running;
      await expect.poll(running, { timeout: 60_000, interval: 20 }).toBeGreaterThan(4);
      expect(await ask()).toBe(8);
      strangers.abort();
      await strange;
      await expect.poll(running, { timeout: 60_000, interval: 200 }).toBe(0);
      // The first groups are dealt out evenly; the others go to who is done first.
      const shared = await ask();
      expect(shared).toBeGreaterThan(0);
      expect(shared).toBeLessThan(8);
    } finally {
      strangers.abort();
      idle.close();
    }
  });

  it("refuses a group whose completions the server aborted, and takes the second try whole", async () => {
    const retried: string[] = [];
    const source = vllmRollouts({
      servers: [server],
      model: "tiny",
      maxCompletion: 300,
      concurrency: 1,
      attempts: 3,
      restMs: 10,
      onRetry: (error) => retried.push(error.what),
    });
    const request = (attempt: number) => ({
      prompts: [PROMPTS[0] ?? []],
      n: 4,
      temperature: 1,
      seed: `server-abort ${attempt}`,
    });
    let group: readonly Completion[] = [];
    let attempt = 0;
    // The group may be done before its gauge is seen: then another is tried.
    while (retried.length === 0 && attempt < 20) {
      let done = false;
      const pending = source.sample(request(++attempt)).finally(() => {
        done = true;
      });
      while (!done && (await server.gauges()).running === 0);
      await server.pause("abort");
      await server.resume();
      [group = []] = await pending;
    }
    expect(retried).toEqual([expect.stringContaining('"abort"')]);
    expect(group).toHaveLength(4);
    const [undisturbed = []] = await rollouts({ maxCompletion: 300 }).sample(request(attempt));
    expect(group.map(({ tokens }) => tokens)).toEqual(undisturbed.map(({ tokens }) => tokens));
  });

  for (const mode of ["disk", "transfer"] as const) {
    it(`brings other weights by ${mode}, proves them by a probe, and goes back`, async () => {
      const { model, otherModel } = engineServers();
      const tokens = [...(PROMPTS[1] ?? []), 65, 66, 67, 259, 120, 260];
      const before = await logprobsOf(tokens);
      let expected = before;
      const sync = vllmWeightSync({
        mode,
        servers: [server],
        model: "tiny",
        exportWeights: async (version) => (version % 2 === 1 ? otherModel : model),
        probe: { tokens, engineLogprobs: async () => expected },
        tolerance: TOLERANCE,
      });
      try {
        // The probe is the old weights': the new ones must be noticed.
        const mismatch = await sync.push(1).catch((error: unknown) => error);
        expect(isError(mismatch, "SYNC_MISMATCH")).toBe(true);
        expect(sync.served).toBeUndefined();
        expected = await logprobsOf(tokens);
        expect(Math.max(...expected.map((logprob, i) => Math.abs(logprob - (before[i] ?? 0))))).toBeGreaterThan(0.1);
        expect((await sync.push(3)).policyVersion).toBe(3);
        expect(sync.served).toBe(3);
      } finally {
        expected = before;
        await sync.push(4);
      }
      expect(await logprobsOf(tokens)).toEqual(before);
    });
  }

  it("says that an adapter's folder is not there", async () => {
    const sync = vllmWeightSync({
      mode: "lora",
      servers: [server],
      model: "tiny",
      exportWeights: async () => "no-such-folder",
      probe: { tokens: [65, 66], engineLogprobs: async () => [-1] },
      tolerance: TOLERANCE,
    });
    await expect(sync.push(1)).rejects.toMatchObject({ code: "SYNC_FAILED", what: expect.stringContaining("lora") });
  });
});

/** The same server at another address, where its gauges say that it has nothing to do. */
async function idleFront(target: URL) {
  let completions = 0;
  const front: Server = createServer((request, response) => {
    if (request.url === "/metrics") {
      response.end('vllm:num_requests_running{engine="0"} 0.0\nvllm:num_requests_waiting{engine="0"} 0.0\n');
      return;
    }
    completions++;
    void buffer(request)
      .then((body) =>
        fetch(new URL(request.url ?? "", target), {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: new Uint8Array(body),
        }),
      )
      .then(async (answer) => response.writeHead(answer.status).end(await answer.text()));
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  const { port } = front.address() as AddressInfo;
  return {
    url: new URL(`http://127.0.0.1:${port}`),
    completions: () => completions,
    close: () => {
      front.closeAllConnections();
      front.close();
    },
  };
}
