import { z } from "zod";
import { RootstepError } from "../errors.ts";
import type { Usage } from "../trajectory/schema.ts";
import type { ChatMessage, ChatRequest, ChatResponse } from "./chat-model.ts";
import { contentKey } from "./content-key.ts";
import { isPlain, withMessages } from "./message-json.ts";

/*
 * The OpenAI chat-completions wire format. What we send is exact; what comes back is read leniently, because servers
 * leave fields out (usage, ids), send null for "", or objects where the specification says JSON text.
 */

export interface WireOptions {
  readonly model: string;
  readonly stream: boolean;
  /** Newer OpenAI models refuse `max_tokens`. */
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens" | undefined;
  /** Fields the interface does not know (`chat_template_kwargs`, `top_k`), sent as they are. */
  readonly extraBody?: Readonly<Record<string, unknown>> | undefined;
}

/** The request body of `POST /chat/completions`. */
export function toWireRequest(request: ChatRequest, options: WireOptions) {
  return {
    model: options.model,
    messages: request.messages.map(toWireMessage),
    ...(request.tools === undefined || request.tools.length === 0
      ? {}
      : { tools: request.tools.map((tool) => ({ type: "function", function: { ...tool } })) }),
    ...(request.responseFormat === undefined ? {} : { response_format: toWireFormat(request.responseFormat) }),
    ...(request.temperature === undefined ? {} : { temperature: request.temperature }),
    ...(request.topP === undefined ? {} : { top_p: request.topP }),
    ...(request.maxTokens === undefined ? {} : { [options.maxTokensField ?? "max_tokens"]: request.maxTokens }),
    ...(request.seed === undefined ? {} : { seed: request.seed }),
    ...(request.stop === undefined ? {} : { stop: [...request.stop] }),
    stream: options.stream,
    ...(options.stream ? { stream_options: { include_usage: true } } : {}),
    ...options.extraBody,
  };
}

/** `toWireRequest` as UTF-8 JSON. Plain messages look the same on the wire as in the cache key and are not quoted again. */
export function wireBody(request: ChatRequest, options: WireOptions): Buffer {
  if (!request.messages.every(isPlain) || options.extraBody?.messages !== undefined) {
    return Buffer.from(JSON.stringify(toWireRequest(request, options)), "utf8");
  }
  const { messages: _, ...rest } = toWireRequest({ ...request, messages: [] }, options);
  return withMessages(JSON.stringify(rest), request.messages);
}

/** Fields outside the request change answers too, so they are part of the model's id, and so of cache keys. */
export function extraBodySuffix(extraBody: WireOptions["extraBody"]): string {
  if (extraBody === undefined || Object.keys(extraBody).length === 0) return "";
  return `+${contentKey(extraBody).slice(0, 12)}`;
}

function toWireMessage(message: ChatMessage) {
  return {
    role: message.role,
    content: message.content,
    ...(message.name === undefined ? {} : { name: message.name }),
    ...(message.toolCallId === undefined ? {} : { tool_call_id: message.toolCallId }),
    ...(message.toolCalls === undefined || message.toolCalls.length === 0
      ? {}
      : {
          tool_calls: message.toolCalls.map((call) => ({
            id: call.id,
            type: "function",
            function: { name: call.name, arguments: call.arguments },
          })),
        }),
  };
}

function toWireFormat(format: NonNullable<ChatRequest["responseFormat"]>) {
  return format.type === "json_object"
    ? { type: "json_object" as const }
    : { type: "json_schema" as const, json_schema: { name: format.name, schema: format.schema, strict: true } };
}

/** Text as a string, as null, or as the parts of a multimodal message. */
const text = z
  .union([z.string(), z.array(z.object({ text: z.string().nullish() }))])
  .nullish()
  .transform((value) => (typeof value === "string" ? value : (value ?? []).map((part) => part.text ?? "").join("")));

/** Arguments as JSON text, or as the object it stands for (TGI, Ollama). */
const callArguments = z
  .union([z.string(), z.record(z.string(), z.unknown())])
  .nullish()
  .transform((value) => (typeof value === "object" && value !== null ? JSON.stringify(value) : (value ?? "")));

const wireToolCall = z.object({
  index: z.number().int().nonnegative().nullish(),
  id: z.string().nullish(),
  function: z.object({ name: z.string().nullish(), arguments: callArguments }).nullish(),
});
export type WireToolCall = z.infer<typeof wireToolCall>;

/** A message, or the piece of one in a stream. */
const wireMessage = z
  .object({
    content: text,
    /** OpenAI puts the words of a model that declines here, and null into the content. */
    refusal: z.string().nullish(),
    reasoning_content: z.string().nullish(),
    reasoning: z.string().nullish(),
    tool_calls: z.array(wireToolCall).nullish(),
  })
  .transform((message) => ({
    content: message.content === "" ? (message.refusal ?? "") : message.content,
    reasoning: message.reasoning_content ?? message.reasoning ?? "",
    toolCalls: message.tool_calls ?? [],
  }));

const tokenCount = z.number().int().nonnegative();
/** A usage that is absent or not two counts is no usage: it is never guessed. */
const wireUsage = z
  .object({ prompt_tokens: tokenCount, completion_tokens: tokenCount })
  .transform((usage): Usage => ({ promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens }))
  .optional()
  .catch(undefined);

const finishReason = z.string().nullish().catch(undefined);

export const wireChunkSchema = z.object({
  model: z.string().nullish(),
  usage: wireUsage,
  choices: z
    .array(z.object({ index: z.number().nullish(), delta: wireMessage.nullish(), finish_reason: finishReason }))
    .nullish(),
});
export type WireChunk = z.infer<typeof wireChunkSchema>;

const wireCompletionSchema = z.object({
  model: z.string().nullish(),
  usage: wireUsage,
  choices: z.array(z.object({ message: wireMessage, finish_reason: finishReason })).min(1),
});

/**
 * Parses a value from the wire.
 * @throws RootstepError MODEL_WRONG_SHAPE naming the first field that is not as it must be
 */
export function parseWire<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const field = issue === undefined || issue.path.length === 0 ? "the body" : `field ${issue.path.join(".")}`;
  throw new RootstepError("MODEL_WRONG_SHAPE", {
    what: `The model server's JSON is no chat completion: ${field}: ${issue?.message ?? "invalid"}`,
    where,
  });
}

/** Reads the JSON of a completion that came in one piece. `requestedModel` stands in where the server names none. */
export function fromWireCompletion(value: unknown, requestedModel: string, where: string): ChatResponse {
  const completion = parseWire(wireCompletionSchema, value, where);
  const choice = completion.choices[0];
  if (choice === undefined) throw new RootstepError("MODEL_WRONG_SHAPE", { what: "No choice in the answer", where });
  const { content, reasoning, toolCalls } = choice.message;
  return {
    content,
    ...(reasoning === "" ? {} : { reasoning }),
    toolCalls: toolCalls.map((call, position) => ({
      id: toolCallId(call.id, position),
      name: call.function?.name ?? "",
      arguments: call.function?.arguments ?? "",
    })),
    finishReason: fromWireFinish(choice.finish_reason),
    ...(completion.usage === undefined ? {} : { usage: completion.usage }),
    model: completion.model ?? requestedModel,
  };
}

/** Where the server gives a call no id, its position is its id, so that the tool's answer can name it. */
export function toolCallId(id: string | null | undefined, position: number): string {
  return id === undefined || id === null || id === "" ? `call_${position}` : id;
}

export function fromWireFinish(reason: string | null | undefined): ChatResponse["finishReason"] {
  switch (reason) {
    case "stop":
    case "eos_token": // text-generation-inference
    case "stop_sequence":
      return "stop";
    case "length":
    case "content_filter":
    case "tool_calls":
      return reason;
    case "function_call":
      return "tool_calls";
    default:
      return "unknown";
  }
}
