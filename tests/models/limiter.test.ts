import { expect, onTestFinished, test } from "vitest";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { withLimiter } from "../../src/models/limiter.ts";
import { openAICompatible } from "../../src/models/openai-compatible.ts";
import { scriptedModel } from "../../src/models/scripted.ts";
import { manualClock, settled } from "./manual-clock.ts";
import { startOpenAIServer } from "./openai-server.ts";
import { MODEL, SCENARIOS } from "./scenarios.ts";

const ask = (content: string) => ({ messages: [{ role: "user", content }] }) as const;

test("never more calls at a time than allowed, all answered, in order", async () => {
  let running = 0;
  let most = 0;
  const slow: ChatModel = {
    id: "slow",
    async complete(request) {
      running += 1;
      most = Math.max(most, running);
      await settled();
      running -= 1;
      return { content: request.messages[0]?.content ?? "", toolCalls: [], finishReason: "stop", model: "slow" };
    },
  };
  const model = withLimiter(slow, { concurrency: 3 });
  const names = Array.from({ length: 20 }, (_, i) => `call ${i}`);
  const answers = await Promise.all(names.map((name) => model.complete(ask(name))));
  expect(answers.map(({ content }) => content)).toEqual(names);
  expect(most).toBe(3);
});

test("a failing call gives its slot back", async () => {
  const model = withLimiter(scriptedModel([new Error("broken"), "fine"]), { concurrency: 1 });
  await expect(model.complete(ask("a"))).rejects.toThrow("broken");
  expect((await model.complete(ask("b"))).content).toBe("fine");
});

test("no more calls begin within any minute than allowed", async () => {
  const clock = manualClock(1_000_000);
  const begun: number[] = [];
  const inner = scriptedModel([
    {
      answer: () => {
        begun.push(clock.now() - 1_000_000);
        return "ok";
      },
    },
  ]);
  const model = withLimiter(inner, { concurrency: 10, requestsPerMinute: 2 }, clock);
  const first = model.complete(ask("0"));
  await clock.advance(20_000);
  const rest = Promise.all([1, 2, 3, 4].map((i) => model.complete(ask(String(i)))));
  await clock.advance(200_000);
  await Promise.all([first, rest]);
  // Two at 0 and 20 s; each further one a minute after the one two before it.
  expect(begun).toEqual([0, 20_000, 60_000, 80_000, 120_000]);
});

test("a waiting call leaves the queue when it is interrupted, and asks nothing", async () => {
  const inner = scriptedModel([{ answer: () => new Promise<never>(() => {}) }]);
  const model = withLimiter(inner, { concurrency: 1 });
  void model.complete(ask("first"));
  const controller = new AbortController();
  const second = model.complete(ask("second"), { signal: controller.signal });
  await settled();
  controller.abort();
  await expect(second).rejects.toMatchObject({ code: "INTERRUPTED" });
  expect(inner.requests).toHaveLength(1);
});

test("one signal for many calls is no leak in Node's eyes", async () => {
  const warnings: Error[] = [];
  const listen = (warning: Error) => warnings.push(warning);
  process.on("warning", listen);
  onTestFinished(() => void process.off("warning", listen));
  const server = await startOpenAIServer();
  onTestFinished(server.close);
  const client = openAICompatible({ baseUrl: `${server.url}/v1`, model: MODEL });
  const model = withLimiter(client, { concurrency: 30 });
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 40 }, () => model.complete(SCENARIOS.length.request, { signal })));
  await settled();
  expect(warnings).toEqual([]);
});
