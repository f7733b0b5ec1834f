import type { ChatRequest, ChatResponse } from "../../src/models/chat-model.ts";

export interface Scenario {
  readonly request: ChatRequest;
  readonly response: ChatResponse;
}

export const MODEL = "toy-model";

const weather = {
  name: "weather",
  description: "Weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

/** What every model of the conformance suite is asked, and what it must answer. */
export const SCENARIOS = {
  text: {
    request: { messages: [{ role: "user", content: "say: text" }], temperature: 0, maxTokens: 64 },
    response: {
      content: "Grüße, 世界 🙂 — done.",
      toolCalls: [],
      finishReason: "stop",
      usage: { promptTokens: 11, completionTokens: 7 },
      model: MODEL,
    },
  },
  tools: {
    request: { messages: [{ role: "user", content: "say: tools" }], tools: [weather] },
    response: {
      content: "",
      toolCalls: [
        { id: "call_a", name: "weather", arguments: '{"city": "Zürich"}' },
        { id: "call_b", name: "weather", arguments: '{"city": "東京"}' },
      ],
      finishReason: "tool_calls",
      usage: { promptTokens: 90, completionTokens: 31 },
      model: MODEL,
    },
  },
  reasoning: {
    request: { messages: [{ role: "user", content: "say: reasoning" }] },
    response: {
      content: "42",
      reasoning: "six times seven …",
      toolCalls: [],
      finishReason: "stop",
      usage: { promptTokens: 5, completionTokens: 20 },
      model: MODEL,
    },
  },
  length: {
    request: { messages: [{ role: "user", content: "say: length" }], maxTokens: 2 },
    response: {
      content: "cut of",
      toolCalls: [],
      finishReason: "length",
      usage: { promptTokens: 5, completionTokens: 2 },
      model: MODEL,
    },
  },
} as const satisfies Record<string, Scenario>;

/** The scenario that a message asks for; "hang" is never answered. */
export function scenarioOf(content: string): Scenario | "hang" {
  if (content === "say: hang") return "hang";
  for (const scenario of Object.values(SCENARIOS)) {
    if (scenario.request.messages[0].content === content) return scenario;
  }
  throw new Error(`no scenario for ${content}`);
}

export const HANG: ChatRequest = { messages: [{ role: "user", content: "say: hang" }] };
