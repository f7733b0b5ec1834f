import { z } from "zod";
import type { ChatMessage, ChatRequest, ChatResponse, ToolDefinition } from "../../src/models/chat-model.ts";

/** Text, parts of text (others are left out: the simulator sees no pictures), or nothing beside tool calls. */
const contentSchema = z
  .union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))])
  .nullish()
  .transform((content) => (Array.isArray(content) ? content.map(({ text }) => text ?? "").join("") : (content ?? "")));

const callSchema = z.looseObject({
  id: z.string(),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
});

const messageSchema = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool", "function"]),
  content: contentSchema,
  name: z.string().nullish(),
  tool_calls: z.array(callSchema).nullish(),
  tool_call_id: z.string().nullish(),
});

const toolSchema = z.looseObject({
  function: z.looseObject({
    name: z.string(),
    description: z.string().nullish(),
    parameters: z.record(z.string(), z.unknown()).nullish(),
  }),
});

/** A request to /v1/chat/completions, as far as the simulator looks at it. */
export const chatBodySchema = z.looseObject({
  messages: z.array(messageSchema).min(1),
  tools: z.array(toolSchema).nullish(),
  seed: z.number().int().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
});
type ChatBody = z.infer<typeof chatBodySchema>;

export function chatRequestOf({ messages, tools, seed }: ChatBody): ChatRequest {
  return {
    messages: messages.map(messageOf),
    ...(tools == null ? {} : { tools: tools.map(toolOf) }),
    ...(seed == null ? {} : { seed }),
  };
}

function messageOf({ role, content, name, tool_calls, tool_call_id }: ChatBody["messages"][number]): ChatMessage {
  return {
    role: role === "developer" ? "system" : role === "function" ? "tool" : role,
    content,
    ...(name == null ? {} : { name }),
    ...(tool_calls == null || tool_calls.length === 0
      ? {}
      : { toolCalls: tool_calls.map((call) => ({ id: call.id, ...pick(call.function) })) }),
    ...(tool_call_id == null ? {} : { toolCallId: tool_call_id }),
  };
}

const pick = ({ name, arguments: text }: { name: string; arguments: string }) => ({ name, arguments: text });

function toolOf({ function: { name, description, parameters } }: z.infer<typeof toolSchema>): ToolDefinition {
  return { name, ...(description == null ? {} : { description }), parameters: parameters ?? {} };
}

const wireCalls = ({ toolCalls }: ChatResponse) =>
  toolCalls.map(({ id, name, arguments: text }) => ({ id, type: "function", function: { name, arguments: text } }));

/** The answer whole. */
export function chatCompletion(id: string, created: number, response: ChatResponse): unknown {
  const calls = wireCalls(response);
  const message = {
    role: "assistant",
    content: response.content === "" && calls.length > 0 ? null : response.content,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  return {
    id,
    created,
    object: "chat.completion",
    model: response.model,
    choices: [{ index: 0, message, finish_reason: response.finishReason }],
    usage: wireUsage(response),
  };
}

/** The answer as the events of its stream: word by word, then the tool calls, the end and, if asked for, usage. */
export function* chatChunks(
  id: string,
  created: number,
  response: ChatResponse,
  includeUsage: boolean,
): Generator<unknown> {
  const chunk = (choices: unknown[], usage?: unknown): unknown => ({
    id,
    created,
    object: "chat.completion.chunk",
    model: response.model,
    choices,
    usage,
  });
  const delta = (value: unknown, finish: string | null = null): unknown =>
    chunk([{ index: 0, delta: value, finish_reason: finish }]);
  for (const piece of response.content.match(/\s*\S+/gu) ?? []) yield delta({ role: "assistant", content: piece });
  for (const [index, { id: call, type, function: called }] of wireCalls(response).entries()) {
    const { name, arguments: text } = called;
    yield delta({
      role: "assistant",
      tool_calls: [{ index, id: call, type, function: { name, arguments: "" } }],
    });
    for (const piece of text.match(/.{1,12}/gsu) ?? []) {
      yield delta({ tool_calls: [{ index, function: { arguments: piece } }] });
    }
  }
  yield delta({}, response.finishReason);
  if (includeUsage) yield chunk([], wireUsage(response));
}

function wireUsage({ usage }: ChatResponse): unknown {
  if (usage === undefined) return undefined;
  const { promptTokens, completionTokens } = usage;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}
