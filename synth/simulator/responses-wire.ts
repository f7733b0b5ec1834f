import { z } from "zod";
import type { ChatMessage, ChatRequest, ChatResponse } from "../../src/models/chat-model.ts";

/** Text, or parts of text (others are left out: the simulator sees no pictures). */
const textSchema = z
  .union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))])
  .transform((content) => (typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("")));

const messageItem = z.looseObject({
  type: z.literal("message").optional(),
  role: z.enum(["system", "developer", "user", "assistant"]),
  content: textSchema,
});
const callItem = z.looseObject({
  type: z.literal("function_call"),
  call_id: z.string(),
  name: z.string(),
  arguments: z.string(),
});
const outputItem = z.looseObject({ type: z.literal("function_call_output"), call_id: z.string(), output: textSchema });
const reasoningItem = z.looseObject({ type: z.literal("reasoning") });

const stateless = "this server stores nothing: send the whole input with each request";

/** A request to /v1/responses, as far as the simulator looks at it. */
export const responsesBodySchema = z.looseObject({
  model: z.string().optional(),
  instructions: z.string().nullish(),
  input: z.union([z.string(), z.array(z.union([callItem, outputItem, reasoningItem, messageItem]))]),
  tools: z
    .array(
      z.looseObject({
        type: z.literal("function", { error: "only function tools are offered here" }),
        name: z.string(),
        description: z.string().nullish(),
        parameters: z.record(z.string(), z.unknown()).nullish(),
      }),
    )
    .nullish(),
  previous_response_id: z.null({ error: stateless }).optional(),
  conversation: z.null({ error: stateless }).optional(),
  /** Not OpenAI's, as in chat completions. */
  seed: z.number().int().nullish(),
  stream: z.boolean().nullish(),
});
type ResponsesBody = z.infer<typeof responsesBodySchema>;
type InputItem = Exclude<ResponsesBody["input"], string>[number];

/** The same request as a chat: `instructions` first, calls and their outputs as the messages they stand for. */
export function chatRequestOf({ instructions, input, tools, seed }: ResponsesBody): ChatRequest {
  const system: ChatMessage[] = instructions == null ? [] : [{ role: "system", content: instructions }];
  const said: ChatMessage[] =
    typeof input === "string" ? [{ role: "user", content: input }] : input.flatMap((item) => messageOf(item));
  return {
    messages: joined([...system, ...said]),
    ...(tools == null || tools.length === 0
      ? {}
      : {
          tools: tools.map(({ name, description, parameters }) => ({
            name,
            ...(description == null ? {} : { description }),
            parameters: parameters ?? {},
          })),
        }),
    ...(seed == null ? {} : { seed }),
  };
}

function messageOf(item: InputItem): ChatMessage[] {
  switch (item.type) {
    case "reasoning":
      return [];
    case "function_call":
      return [
        {
          role: "assistant",
          content: "",
          toolCalls: [{ id: item.call_id, name: item.name, arguments: item.arguments }],
        },
      ];
    case "function_call_output":
      return [{ role: "tool", content: item.output, toolCallId: item.call_id }];
    default:
      return [{ role: item.role === "developer" ? "system" : item.role, content: item.content }];
  }
}

/** What the assistant said and called in one answer is several items here and one message of a chat. */
function joined(messages: readonly ChatMessage[]): ChatMessage[] {
  const result: ChatMessage[] = [];
  for (const message of messages) {
    const last = result.at(-1);
    if (last?.role === "assistant" && message.role === "assistant" && message.toolCalls !== undefined) {
      result[result.length - 1] = { ...last, toolCalls: [...(last.toolCalls ?? []), ...message.toolCalls] };
    } else result.push(message);
  }
  return result;
}

/** The answer whole, as OpenAI's API reference has it. */
export function responseObject(
  id: string,
  created: number,
  response: ChatResponse,
  asked: ResponsesBody,
): Readonly<Record<string, unknown>> {
  const message = {
    type: "message",
    id: `msg_${id}`,
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: response.content, annotations: [], logprobs: [] }],
  };
  const calls = response.toolCalls.map((call, index) => ({
    type: "function_call",
    id: `fc_${id}-${index}`,
    call_id: call.id,
    name: call.name,
    arguments: call.arguments,
    status: "completed",
  }));
  return {
    id: `resp_${id}`,
    object: "response",
    created_at: created,
    status: "completed",
    error: null,
    incomplete_details: null,
    instructions: asked.instructions ?? null,
    model: response.model,
    output: response.content === "" && calls.length > 0 ? calls : [message, ...calls],
    parallel_tool_calls: true,
    previous_response_id: null,
    store: false,
    tool_choice: "auto",
    tools: asked.tools ?? [],
    usage: usageOf(response),
  };
}

function usageOf({ usage }: ChatResponse): unknown {
  if (usage === undefined) return null;
  const { promptTokens, completionTokens } = usage;
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: promptTokens + completionTokens,
  };
}
