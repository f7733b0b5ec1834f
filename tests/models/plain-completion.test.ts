import fc from "fast-check";
import { expect, it } from "vitest";
import { plainCompletion } from "../../src/models/plain-completion.ts";
import { fromWireCompletion } from "../../src/models/wire.ts";
import { checkSeeded } from "../formats/seeded.ts";

const message = { role: "assistant", content: "Agent Name: A", refusal: null, tool_calls: [], reasoning_content: "hm" };
const whole = {
  id: "x",
  model: "m",
  choices: [{ index: 0, message, finish_reason: "stop", logprobs: null }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
};

it("reads an answer as the specification has it, and one that says only what it must", () => {
  expect(plainCompletion(whole, "asked")).toEqual({
    content: "Agent Name: A",
    reasoning: "hm",
    toolCalls: [],
    finishReason: "stop",
    usage: { promptTokens: 3, completionTokens: 2 },
    model: "m",
  });
  expect(plainCompletion({ choices: [{ message: { content: "x" } }] }, "asked")).toEqual({
    content: "x",
    toolCalls: [],
    finishReason: "unknown",
    model: "asked",
  });
});

const places = [
  "model",
  "usage",
  "usage.prompt_tokens",
  "usage.completion_tokens",
  "choices",
  "choices.0",
  "choices.1",
  "choices.0.finish_reason",
  "choices.0.message",
  ...["content", "refusal", "tool_calls", "reasoning_content", "reasoning"].map((name) => `choices.0.message.${name}`),
];
const values = [
  ...['""', '"x"', '"length"', '"tool_calls"', "null", "true", "0", "-1", "1.5", "7", "1e300", "[]", "{}", "[[]]"],
  '[{"text":"part"}]',
  '[{"id":"c","function":{"name":"f","arguments":"{}"}}]',
  '{"message":{"content":"second"}}',
  '{"prompt_tokens":1,"completion_tokens":2}',
];

/** The completion with one place taken out or set to something else. */
function changed(value: Record<string, unknown>, place: string, json: string | undefined): Record<string, unknown> {
  const copy: Record<string, unknown> = structuredClone(value);
  const parts = place.split(".");
  const last = parts.pop() ?? "";
  let at: unknown = copy;
  for (const part of parts) at = typeof at === "object" && at !== null ? Reflect.get(at, part) : undefined;
  if (typeof at !== "object" || at === null) return copy;
  if (json === undefined) Reflect.deleteProperty(at, last);
  else Reflect.set(at, last, JSON.parse(json));
  return copy;
}

it("never says anything else than the schema, whatever stands in whatever place", async () => {
  let plain = 0;
  const change = fc.tuple(fc.constantFrom(...places), fc.option(fc.constantFrom(...values), { nil: undefined }));
  const property = fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
    const value = changes.reduce<Record<string, unknown>>((one, [place, json]) => changed(one, place, json), whole);
    const read = plainCompletion(value, "asked");
    if (read === undefined) return;
    plain++;
    expect(read).toEqual(fromWireCompletion(value, "asked", "here"));
  });
  await checkSeeded("plain completions", property, 3000);
  expect(plain).toBeGreaterThan(300);
});
