import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createBudget, withBudget } from "../../src/models/budget.ts";
import { cacheKey, withCache } from "../../src/models/cache.ts";
import { memoryStore, openFileStore } from "../../src/models/cache-store.ts";
import type { ChatRequest } from "../../src/models/chat-model.ts";
import { Secret } from "../../src/models/key.ts";
import { openAICompatible } from "../../src/models/openai-compatible.ts";
import { scriptedModel } from "../../src/models/scripted.ts";
import { settled } from "./manual-clock.ts";
import { startOpenAIServer } from "./openai-server.ts";
import { MODEL, SCENARIOS } from "./scenarios.ts";

const ask: ChatRequest = { messages: [{ role: "user", content: "hello" }], temperature: 0 };

async function temporaryFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "rootstep-cache-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return join(folder, "deep", "cache.jsonl");
}

describe("the key", () => {
  test("is the SHA-256 of the canonical JSON of model, request and epoch", () => {
    // Computed apart: printf '%s' '{"epoch":0,"model":"m","request":{"messages":[{"content":"hello","role":"user"}],"temperature":0}}' | sha256sum
    expect(cacheKey("m", ask)).toBe("0d965891863ce9c48cf24c6eb68f35f87ea071e0f0712caac673350d48ea0879");
  });

  test("does not depend on the order of fields, but on everything else", () => {
    const turned: ChatRequest = { temperature: 0, messages: [{ content: "hello", role: "user" }] };
    expect(cacheKey("m", turned)).toBe(cacheKey("m", ask));
    const keys = [
      cacheKey("m", ask),
      cacheKey("other", ask),
      cacheKey("m", ask, 1),
      cacheKey("m", { ...ask, temperature: 0.1 }),
      cacheKey("m", { ...ask, seed: 0 }),
      cacheKey("m", { messages: [{ role: "user", content: "hello " }], temperature: 0 }),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe("the cache", () => {
  test("asks once, answers again, counts, and costs nothing for a hit", async () => {
    const inner = scriptedModel(["first", "second"]);
    const budget = createBudget({ maxCalls: 2 });
    const model = withCache(withBudget(inner, budget), memoryStore());
    expect((await model.complete(ask)).content).toBe("first");
    expect((await model.complete(ask)).content).toBe("first");
    expect((await model.complete(ask, { epoch: 1 })).content).toBe("second");
    expect((await model.complete(ask, { epoch: 1 })).content).toBe("second");
    expect(model.counts()).toEqual({ hits: 2, misses: 2, joined: 0 });
    expect(budget.spent().calls).toBe(2);
  });

  test("identical requests at the same time are asked once, and each listener hears the answer", async () => {
    const inner = scriptedModel([
      {
        answer: async () => {
          await settled();
          return "answer";
        },
      },
    ]);
    const model = withCache(inner, memoryStore());
    const heard: string[] = [];
    const calls = Array.from({ length: 20 }, () =>
      model.complete(ask, { onDelta: (d) => heard.push(d.content ?? "") }),
    );
    const answers = await Promise.all(calls);
    expect(new Set(answers.map(({ content }) => content))).toEqual(new Set(["answer"]));
    expect(heard).toEqual(Array(20).fill("answer"));
    expect(inner.requests).toHaveLength(1);
    expect(model.counts()).toEqual({ hits: 0, misses: 1, joined: 19 });
  });

  test("a failure reaches everyone who waits and is not kept", async () => {
    const model = withCache(scriptedModel([new Error("broken"), "fine"]), memoryStore());
    const results = await Promise.allSettled([model.complete(ask), model.complete(ask)]);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect((await model.complete(ask)).content).toBe("fine");
  });

  test("one caller's interruption does not take the answer from another; that of all ends the call", async () => {
    let finish = (_text: string): void => {};
    const inner = scriptedModel([{ answer: () => new Promise<string>((resolve) => (finish = resolve)) }]);
    const model = withCache(inner, memoryStore());
    const first = new AbortController();
    const one = model.complete(ask, { signal: first.signal });
    const two = model.complete(ask);
    await settled();
    first.abort();
    await expect(one).rejects.toMatchObject({ code: "INTERRUPTED" });
    expect(inner.requests[0]?.options.signal?.aborted).toBe(false);
    finish("answer");
    expect((await two).content).toBe("answer");

    const last = new AbortController();
    const three = model.complete(ask, { signal: last.signal, epoch: 1 });
    await settled();
    last.abort();
    await expect(three).rejects.toMatchObject({ code: "INTERRUPTED" });
    expect(inner.requests[1]?.options.signal?.aborted).toBe(true);
  });
});

describe("the file", () => {
  test("keeps whole answers from one process to the next, one line each", async () => {
    const path = await temporaryFile();
    const { response } = SCENARIOS.reasoning;
    const store = await openFileStore(path);
    const model = withCache(scriptedModel([response, "two\nlines"]), store);
    await Promise.all([model.complete(ask), model.complete(ask, { epoch: 1 })]);
    await store.close();
    expect((await readFile(path, "utf8")).split("\n")).toHaveLength(3);

    const again = await openFileStore(path);
    onTestFinished(again.close);
    expect(again).toMatchObject({ size: 2, tornBytes: 0 });
    const kept = withCache(scriptedModel([]), again);
    expect(await kept.complete(ask)).toEqual(response);
    expect((await kept.complete(ask, { epoch: 1 })).content).toBe("two\nlines");
    expect(kept.counts()).toEqual({ hits: 2, misses: 0, joined: 0 });
  });

  test("a torn last line is reported, cut off and asked again; all before it is kept", async () => {
    const path = await temporaryFile();
    const store = await openFileStore(path);
    await withCache(scriptedModel(["one"]), store).complete(ask);
    await store.close();
    const torn = '{"key":"ab","model":"scripted","response":{"content":"Grü';
    await appendFile(path, Buffer.from(torn).subarray(0, -1)); // cut inside a character

    const again = await openFileStore(path);
    expect(again).toMatchObject({ size: 1, tornBytes: Buffer.byteLength(torn) - 1 });
    await withCache(scriptedModel(["two"]), again).complete(ask, { epoch: 1 });
    await again.close();

    const last = await openFileStore(path);
    onTestFinished(last.close);
    expect(last).toMatchObject({ size: 2, tornBytes: 0 });
  });

  test("a broken line before the last is an error that names it", async () => {
    const path = await temporaryFile();
    await (await openFileStore(path)).close();
    for (const line of ["not JSON", '{"key":"short"}', ""]) {
      await writeFile(path, `${line}\n`);
      await expect(openFileStore(path)).rejects.toMatchObject({ code: "RUN_CORRUPT", where: `${path}:1` });
    }
  });

  test("a path that cannot be written is an error that names it", async () => {
    const path = await temporaryFile();
    await (await openFileStore(path)).close();
    await expect(openFileStore(join(path, "below-a-file"))).rejects.toMatchObject({ code: "FILE_UNREADABLE" });
  });

  test("holds no key", async () => {
    const server = await startOpenAIServer();
    onTestFinished(server.close);
    const path = await temporaryFile();
    const key = "sk-neverInAFile0123456789";
    const store = await openFileStore(path);
    const client = openAICompatible({
      baseUrl: `${server.url}/v1?token=${key}`,
      model: MODEL,
      apiKey: new Secret(key),
    });
    await withCache(client, store).complete(SCENARIOS.text.request);
    await store.close();
    expect(server.seen[0]?.headers.authorization).toBe(`Bearer ${key}`);
    expect(await readFile(path, "utf8")).not.toContain(key);
  });
});
