import { describe, expect, test } from "vitest";
import { readCompletion, readCompletionStream } from "../../src/models/read-completion.ts";
import { toWireRequest } from "../../src/models/wire.ts";

const place = { where: "http://127.0.0.1:1/v1", secrets: [] };
const read = (value: unknown) => readCompletion(value, "asked-for", place);

async function readEvents(...events: object[]) {
  async function* chunks() {
    for (const event of events) yield new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`);
    yield new TextEncoder().encode("data: [DONE]\n\n");
  }
  return readCompletionStream(chunks(), "asked-for", place);
}
const delta = (value: object, finish_reason: string | null = null) => ({ choices: [{ delta: value, finish_reason }] });

test("the words of a model that declines are its answer, whole or streamed", async () => {
  const message = { role: "assistant", content: null, refusal: "I'm sorry, I can't help with that." };
  expect(read({ choices: [{ message, finish_reason: "stop" }] }).content).toBe(message.refusal);
  const streamed = await readEvents(
    delta({ role: "assistant", content: "", refusal: null }),
    delta({ refusal: "I'm sorry, " }),
    delta({ refusal: "I can't help with that." }),
    delta({}, "stop"),
  );
  expect(streamed.content).toBe(message.refusal);
  const both = { role: "assistant", content: "3", refusal: null };
  expect(read({ choices: [{ message: both, finish_reason: "stop" }] }).content).toBe("3");
});

test("a request becomes the body of OpenAI's API reference", () => {
  const wire = toWireRequest(
    {
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Weather?", name: "ada" },
        {
          role: "assistant",
          content: "",
          toolCalls: [{ id: "call_1", name: "weather", arguments: '{"city":"Bonn"}' }],
        },
        { role: "tool", content: "sunny", toolCallId: "call_1" },
      ],
      tools: [{ name: "weather", description: "Weather of a city", parameters: { type: "object" } }],
      responseFormat: { type: "json_schema", name: "answer", schema: { type: "object" } },
      temperature: 0.2,
      topP: 0.9,
      maxTokens: 100,
      seed: 7,
      stop: ["END"],
    },
    { model: "m", stream: true, extraBody: { chat_template_kwargs: { enable_thinking: false } } },
  );
  expect(wire).toEqual({
    model: "m",
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Weather?", name: "ada" },
      {
        role: "assistant",
        content: "",
        tool_calls: [{ id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Bonn"}' } }],
      },
      { role: "tool", content: "sunny", tool_call_id: "call_1" },
    ],
    tools: [
      {
        type: "function",
        function: { name: "weather", description: "Weather of a city", parameters: { type: "object" } },
      },
    ],
    response_format: { type: "json_schema", json_schema: { name: "answer", schema: { type: "object" }, strict: true } },
    temperature: 0.2,
    top_p: 0.9,
    max_tokens: 100,
    seed: 7,
    stop: ["END"],
    stream: true,
    stream_options: { include_usage: true },
    chat_template_kwargs: { enable_thinking: false },
  });
});

test("what a request leaves open is not sent", () => {
  expect(toWireRequest({ messages: [] }, { model: "m", stream: false })).toEqual({
    model: "m",
    messages: [],
    stream: false,
  });
});

test("newer OpenAI models get max_completion_tokens", () => {
  const options = { model: "m", stream: false, maxTokensField: "max_completion_tokens" } as const;
  expect(toWireRequest({ messages: [], maxTokens: 5 }, options)).toMatchObject({ max_completion_tokens: 5 });
});

describe("what servers leave out or write otherwise", () => {
  test("the least a server may send", () => {
    expect(read({ choices: [{ message: {} }] })).toEqual({
      content: "",
      toolCalls: [],
      finishReason: "unknown",
      model: "asked-for",
    });
  });

  test("a usage that is no two counts is no usage", () => {
    for (const usage of [null, {}, { prompt_tokens: -1, completion_tokens: 2 }, { prompt_tokens: "3" }, "none"]) {
      expect(read({ choices: [{ message: { content: "x" } }], usage })).not.toHaveProperty("usage");
    }
  });

  test("content in parts, reasoning by its other name", () => {
    const message = {
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
      reasoning: "why",
    };
    expect(read({ choices: [{ message }] })).toMatchObject({ content: "ab", reasoning: "why" });
  });

  test("arguments as an object, a call without id", () => {
    const message = { content: null, tool_calls: [{ function: { name: "f", arguments: { a: 1 } } }] };
    expect(read({ choices: [{ message }] }).toolCalls).toEqual([{ id: "call_0", name: "f", arguments: '{"a":1}' }]);
  });

  test.each([
    ["stop", "stop"],
    ["eos_token", "stop"],
    ["stop_sequence", "stop"],
    ["length", "length"],
    ["tool_calls", "tool_calls"],
    ["function_call", "tool_calls"],
    ["content_filter", "content_filter"],
    ["abort", "unknown"],
    [null, "unknown"],
  ])("finish reason %s is %s", (wire, expected) => {
    expect(read({ choices: [{ message: {}, finish_reason: wire }] }).finishReason).toBe(expected);
  });

  test("streamed calls are put together by index, also when their pieces alternate", async () => {
    const call = (index: number, id: string | undefined, name: string | undefined, text: string) =>
      delta({ tool_calls: [{ index, id, function: { name, arguments: text } }] });
    const { toolCalls } = await readEvents(
      call(1, "b", "second", "{"),
      call(0, "a", "first", '{"x"'),
      call(1, undefined, undefined, "}"),
      call(0, undefined, "first", ":1}"),
    );
    expect(toolCalls).toEqual([
      { id: "a", name: "first", arguments: '{"x":1}' },
      { id: "b", name: "second", arguments: "{}" },
    ]);
  });

  test("streamed calls without index: an id begins a new one", async () => {
    const call = (id: string | undefined, text: string) =>
      delta({ tool_calls: [{ id, function: { name: id && "f", arguments: text } }] });
    const { toolCalls } = await readEvents(call("a", "1"), call(undefined, "2"), call("b", "3"));
    expect(toolCalls).toEqual([
      { id: "a", name: "f", arguments: "12" },
      { id: "b", name: "f", arguments: "3" },
    ]);
  });

  test("of continuous usage the last counts; other choices than the first do not", async () => {
    const usage = (n: number) => ({ usage: { prompt_tokens: 4, completion_tokens: n } });
    const answer = await readEvents(
      { ...delta({ content: "a" }), ...usage(1) },
      { choices: [{ index: 1, delta: { content: "other" } }] },
      { ...delta({ content: "b" }, "stop"), ...usage(2) },
    );
    expect(answer).toEqual({
      content: "ab",
      toolCalls: [],
      finishReason: "stop",
      usage: { promptTokens: 4, completionTokens: 2 },
      model: "asked-for",
    });
  });
});
