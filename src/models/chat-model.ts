import type { Usage } from "../trajectory/schema.ts";

/** A tool call inside an assistant message; `arguments` is the model's JSON text, unparsed. */
export interface ChatToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  readonly name?: string;
  readonly toolCalls?: readonly ChatToolCall[];
  /** For role "tool": the call this answers. */
  readonly toolCallId?: string;
}

export interface ToolDefinition {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** What changes an answer; the cache key and the tape's match are made of exactly this. */
export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly ToolDefinition[];
  readonly responseFormat?:
    | { readonly type: "json_object" }
    | { readonly type: "json_schema"; readonly name: string; readonly schema: Readonly<Record<string, unknown>> };
  readonly temperature?: number;
  readonly topP?: number;
  readonly maxTokens?: number;
  readonly seed?: number;
  readonly stop?: readonly string[];
}

export interface ChatResponse {
  readonly content: string;
  /** Reasoning that the server keeps apart from the answer (`reasoning_content`), if any. */
  readonly reasoning?: string;
  readonly toolCalls: readonly ChatToolCall[];
  readonly finishReason: "stop" | "length" | "tool_calls" | "content_filter" | "unknown";
  /** Undefined where the server reports none: never guessed. */
  readonly usage?: Usage;
  /** Model name as the server gives it back. */
  readonly model: string;
}

/** What does not change an answer. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Which agent asks: the tape's lane and the ledger's name. */
  readonly agent?: string;
  /** Called with each piece as it streams in; without it the client may still stream inside. */
  readonly onDelta?: (delta: { readonly content?: string; readonly reasoning?: string }) => void;
  /** Distinguishes repeated identical requests (epoch, replicate) in the cache; part of its key. */
  readonly epoch?: number;
}

/** A chat model: hosted, local, simulated, scripted, or one of these behind a cache, a limiter, a budget or a tape. */
export interface ChatModel {
  /** Stable name of what answers: goes into cache keys and manifests. Holds no secret. */
  readonly id: string;
  /** @throws RootstepError MODEL_*, BUDGET_REACHED, INTERRUPTED, REPLAY_DIVERGED */
  complete(request: ChatRequest, options?: CallOptions): Promise<ChatResponse>;
}
