import { expect, test } from "vitest";
import { scriptedModel } from "../../src/models/scripted.ts";

const ask = (content: string) => ({ messages: [{ role: "user", content }] }) as const;

test("bare answers are a queue; when it is empty, the error says what was asked", async () => {
  const model = scriptedModel(["one", { content: "two", finishReason: "length" }]);
  expect(await model.complete(ask("a"))).toEqual({
    content: "one",
    toolCalls: [],
    finishReason: "stop",
    model: "scripted",
  });
  expect(await model.complete(ask("b"))).toMatchObject({ content: "two", finishReason: "length" });
  await expect(model.complete(ask("what now?"))).rejects.toMatchObject({
    code: "SCRIPT_EXHAUSTED",
    what: 'No rule left for request 3, whose last message begins "what now?"',
  });
  expect(model.requests.map(({ request }) => request.messages[0]?.content)).toEqual(["a", "b", "what now?"]);
});

test("the first rule that matches and is not used up answers", async () => {
  const model = scriptedModel([
    { when: "weather", answer: "rain", times: 1 },
    { when: /weather/i, answer: "sun" },
    { when: (request, { agent }) => agent === "critic" && request.messages.length === 1, answer: () => "bad" },
    { when: "call", answer: { toolCalls: [{ id: "1", name: "f", arguments: "{}" }] } },
    { when: "break", answer: new Error("as told") },
  ]);
  const say = async (content: string, agent?: string) =>
    (await model.complete(ask(content), agent === undefined ? {} : { agent })).content;
  expect(await say("weather?")).toBe("rain");
  expect(await say("weather?")).toBe("sun");
  expect(await say("Weather!")).toBe("sun");
  expect(await say("anything", "critic")).toBe("bad");
  expect(await model.complete(ask("call"))).toMatchObject({ finishReason: "tool_calls" });
  await expect(model.complete(ask("break"))).rejects.toThrow("as told");
  await expect(model.complete(ask("anything"))).rejects.toMatchObject({ code: "SCRIPT_EXHAUSTED" });
});
