import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { Clock } from "../../src/models/clock.ts";
import type { RolloutSource } from "../../trainer/engines/engine.ts";
import { checkCompletions } from "../../trainer/rollouts.ts";
import { vllmRollouts } from "../../trainer/vllm/rollouts.ts";
import { openVllmServer } from "../../trainer/vllm/server.ts";

const requestSchema = z.looseObject({
  model: z.string(),
  prompt: z.array(z.number()),
  n: z.number(),
  seed: z.number(),
});
type Asked = z.infer<typeof requestSchema>;
type Answer = (asked: Asked, response: ServerResponse, nth: number) => void;

/** What a good server answers: each completion is its seed and index. */
function good({ model, prompt, n, seed }: Asked) {
  const choices = Array.from({ length: n }, (_, index) => ({
    index,
    token_ids: [seed % 1000, index],
    prompt_token_ids: prompt,
    logprobs: { token_logprobs: [-1, -2] as (number | null)[] },
    finish_reason: "stop" as string,
  }));
  return { model, choices };
}
const send = (response: ServerResponse, body: unknown, status = 200): void => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
};

/** A clock whose sleeps take no time, and which remembers them. */
function fastClock(): Clock & { readonly slept: number[] } {
  let now = 0;
  const slept: number[] = [];
  return {
    slept,
    now: () => now,
    async sleep(ms, signal) {
      signal?.throwIfAborted();
      slept.push(ms);
      now += ms;
    },
  };
}

describe("rollouts from vLLM servers that misbehave", () => {
  const servers: Server[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  /** A server and how often it was asked for completions. */
  async function serve(
    answer: Answer,
    load = 0,
  ): Promise<{ readonly url: URL; readonly asked: Asked[]; close(): void }> {
    const asked: Asked[] = [];
    const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      if (request.url === "/metrics") {
        response.end(`vllm:num_requests_running{engine="0"} ${load}\nvllm:num_requests_waiting{engine="0"} 0\n`);
        return;
      }
      const body = requestSchema.parse(JSON.parse(await text(request)));
      asked.push(body);
      answer(body, response, asked.length);
    };
    const server = createServer((request, response) => void handle(request, response));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    return { url: new URL(`http://127.0.0.1:${port}`), asked, close: () => server.close() };
  }

  function source(urls: readonly URL[], changes: { attempts?: number; clock?: Clock; totalMs?: number } = {}) {
    const { attempts = 3, totalMs = 60_000 } = changes;
    return vllmRollouts({
      servers: urls.map((url) => openVllmServer({ url, timeouts: { firstByteMs: totalMs, totalMs } })),
      model: "tiny",
      maxCompletion: 8,
      concurrency: 8,
      attempts,
      clock: changes.clock ?? fastClock(),
    });
  }
  const ask = (rollouts: RolloutSource, prompts = 4, signal?: AbortSignal) =>
    rollouts.sample({
      prompts: Array.from({ length: prompts }, (_, p) => [p, 7]),
      n: 3,
      temperature: 1,
      seed: "faults",
      ...(signal && { signal }),
    });
  const always =
    (body: (asked: Asked) => unknown, status = 200): Answer =>
    (asked, response) =>
      send(response, body(asked), status);

  it("takes an undisturbed answer as it is, from whichever server", async () => {
    const [one, two] = [await serve(always(good)), await serve(always(good))];
    const alone = await ask(source([one.url]));
    expect(await ask(source([one.url, two.url]))).toEqual(alone);
    expect(alone.map((group) => group.length)).toEqual([3, 3, 3, 3]);
  });

  it("spreads groups over servers, fewer to one that others keep busy", async () => {
    const [idle, busy] = [await serve(always(good), 0), await serve(always(good), 100)];
    await ask(source([busy.url, idle.url]), 12);
    expect([idle.asked.length, busy.asked.length]).toEqual([12, 0]);
    const [a, b] = [await serve(always(good)), await serve(always(good))];
    await ask(source([a.url, b.url]), 12);
    expect(a.asked.length + b.asked.length).toBe(12);
    expect(Math.min(a.asked.length, b.asked.length)).toBeGreaterThan(2);
  });

  it("asks again where a server fails for a while, with the same seeds, and counts no sample twice", async () => {
    const flaky = await serve((asked, response, nth) => {
      if (nth % 2 === 1) send(response, { error: { message: "EngineCore encountered an issue", code: 500 } }, 500);
      else send(response, good(asked));
    });
    const steady = await serve(always(good));
    expect(await ask(source([flaky.url], { attempts: 8 }))).toEqual(await ask(source([steady.url])));
  });

  it("goes on with the servers that live when one dies, and gives up in bounded time when all are dead", async () => {
    const alive = await serve(always(good));
    const dead = await serve(always(good));
    dead.close();
    const clock = fastClock();
    expect((await ask(source([dead.url, alive.url], { clock }), 16)).length).toBe(16);
    alive.close();
    servers.forEach((server) => void server.closeAllConnections());
    const gone = ask(source([dead.url, alive.url], { clock }), 64);
    await expect(gone).rejects.toMatchObject({ code: "MODEL_UNREACHABLE", side: "model server" });
    // 64 groups that fail together are no reason to wait for hours.
    expect(Math.max(...clock.slept)).toBeLessThanOrEqual(30_000);
  });

  it("ends a request to a server that hangs at its time limit", async () => {
    const hung = await serve(() => {});
    const failed = ask(source([hung.url], { attempts: 2, totalMs: 300 }), 1);
    await expect(failed).rejects.toMatchObject({ code: "MODEL_TIMEOUT" });
    expect(hung.asked).toHaveLength(2);
  });

  it("stops at once when it is interrupted, and when another group has failed", async () => {
    const hung = await serve(() => {});
    const controller = new AbortController();
    const pending = ask(source([hung.url]), 4, controller.signal);
    await expect.poll(() => hung.asked.length).toBeGreaterThan(0);
    controller.abort();
    await expect(pending).rejects.toMatchObject({ code: "INTERRUPTED" });
    const half = await serve((asked, response) => {
      if (asked.prompt[0] === 1) send(response, { error: { message: "no such model" } }, 404);
    });
    await expect(ask(source([half.url]))).rejects.toMatchObject({ code: "MODEL_REFUSED_REQUEST" });
  });

  type Good = ReturnType<typeof good>;
  const first = (change: (choice: Good["choices"][number]) => object) => (asked: Asked) => {
    const { model, choices } = good(asked);
    return { model, choices: choices.map((choice, i) => (i === 0 ? { ...choice, ...change(choice) } : choice)) };
  };
  const refused: readonly (readonly [string, (asked: Asked) => unknown, RegExp])[] = [
    ["too few completions", (asked) => ({ ...good(asked), choices: good(asked).choices.slice(1) }), /2 of 3/u],
    ["one completion twice", first(() => ({ index: 1 })), /of 3 completions/u],
    ["another model's name", (asked) => ({ ...good(asked), model: "other" }), /answered as other/u],
    ["another alphabet's name", (asked) => ({ ...good(asked), model: "tïny 模型" }), /answered as tïny 模型$/u],
    ["another prompt", first(() => ({ prompt_token_ids: [9, 9] })), /another prompt/u],
    ["no token", first(() => ({ token_ids: [], logprobs: { token_logprobs: [] } })), /without a token/u],
    ["a log-probability too few", first(() => ({ logprobs: { token_logprobs: [-1] } })), /1 log-probabilities for 2/u],
    ["a context that ended", first(() => ({ finish_reason: "length" })), /end of the server's context/u],
    ["another shape", () => ({ model: "tiny", choices: [{ index: 0, text: "hello" }] }), /another shape/u],
    ["an unknown finish", first(() => ({ finish_reason: "content_filter" })), /"content_filter"/u],
  ];
  for (const [what, body, message] of refused) {
    it(`refuses an answer with ${what}`, async () => {
      const server = await serve(always(body));
      await expect(ask(source([server.url]), 1)).rejects.toMatchObject({
        code: "ENGINE_FAILED",
        what: expect.stringMatching(message),
      });
    });
  }

  it("passes a NaN on as NaN, which the loop refuses by name", async () => {
    const server = await serve(always(first(() => ({ logprobs: { token_logprobs: [-1, null] } }))));
    const rollouts = source([server.url]);
    const groups = await ask(rollouts, 1);
    const asked = { prompts: [[0, 7]], n: 3, seed: "faults" };
    expect(() => checkCompletions(rollouts.id, groups, asked)).toThrow(expect.objectContaining({ code: "ENGINE_NAN" }));
  });
});
