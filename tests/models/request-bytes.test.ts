import fc from "fast-check";
import { expect, test } from "vitest";
import { cacheKey } from "../../src/models/cache.ts";
import type { ChatMessage, ChatRequest } from "../../src/models/chat-model.ts";
import { contentKey } from "../../src/models/content-key.ts";
import { messagesJson } from "../../src/models/message-json.ts";
import { toWireRequest, type WireOptions, wireBody } from "../../src/models/wire.ts";
import { checkSeeded } from "../formats/seeded.ts";

/** Any text: control characters, quotes, lone surrogates. */
const text = fc.string({ unit: "binary", maxLength: 30 });
const message: fc.Arbitrary<ChatMessage> = fc.record(
  {
    role: fc.constantFrom("system" as const, "user" as const, "assistant" as const, "tool" as const),
    content: text,
    name: text,
    toolCallId: text,
    toolCalls: fc.array(fc.record({ id: text, name: text, arguments: text }), { maxLength: 2 }),
  },
  { requiredKeys: ["role", "content"] },
);
const request: fc.Arbitrary<ChatRequest> = fc.record(
  {
    messages: fc.array(message, { maxLength: 4 }),
    tools: fc.array(fc.record({ name: text, parameters: fc.dictionary(text, text) }), { maxLength: 2 }),
    responseFormat: fc.constant({ type: "json_object" as const }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    topP: fc.double({ min: 0.1, max: 1, noNaN: true }),
    maxTokens: fc.nat(),
    seed: fc.integer(),
    stop: fc.array(text, { maxLength: 2 }),
  },
  { requiredKeys: ["messages"] },
);
const options: fc.Arbitrary<WireOptions> = fc.record(
  {
    model: text,
    stream: fc.boolean(),
    extraBody: fc.dictionary(fc.constantFrom("top_k", "messages", "model"), fc.nat()),
  },
  { requiredKeys: ["model", "stream"] },
);

test("the cache key is that of the whole value, however it is put together", async () => {
  const property = fc.property(request, text, fc.nat(), (asked, model, epoch) => {
    const whole = contentKey({ model, request: asked, epoch });
    expect(cacheKey(model, asked, epoch)).toBe(whole);
    expect(cacheKey(model, asked, epoch)).toBe(whole);
  });
  await checkSeeded("cache keys", property, 500);
});

test("the body is the wire request, whatever is asked and how often", async () => {
  const property = fc.property(request, options, options, (asked, first, second) => {
    for (const wire of [first, second, first]) {
      const expected: unknown = JSON.parse(JSON.stringify(toWireRequest(asked, wire)));
      expect(JSON.parse(wireBody(asked, wire).toString("utf8"))).toEqual(expected);
    }
  });
  await checkSeeded("wire bodies", property, 500);
});

test("an array that goes on growing or changes is never taken for what it was", () => {
  const messages: ChatMessage[] = [{ role: "user", content: "one" }];
  const keys = new Set([cacheKey("m", { messages })]);
  const bodies = new Set([wireBody({ messages }, { model: "m", stream: false }).toString()]);
  const look = (): void => {
    keys.add(cacheKey("m", { messages }));
    bodies.add(wireBody({ messages }, { model: "m", stream: false }).toString());
    expect(JSON.parse(messagesJson(messages).toString())).toEqual(messages);
  };
  messages.push({ role: "assistant", content: "two" });
  look();
  messages[1] = { role: "assistant", content: "other" };
  look();
  messages[1] = { role: "user", content: "other" };
  look();
  messages[1] = { role: "user", content: "other", name: "n" };
  look();
  messages[1] = { role: "user", content: "other", toolCalls: [{ id: "1", name: "f", arguments: "{}" }] };
  look();
  messages.pop();
  messages.push({ role: "user", content: "three" });
  look();
  expect([keys.size, bodies.size]).toEqual([7, 7]);
});
