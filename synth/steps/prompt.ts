import { isRecord } from "../../src/is-record.ts";
import type { Endpoint } from "../tape/folder-schema.ts";

/** A message of a request, whatever the endpoint. */
export interface PromptMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly text: string;
  /** Of an assistant's message: what it had called. */
  readonly toolCalls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  /** Of a tool's message: which call it answers. */
  readonly toolCallId: string | undefined;
}

/** The messages of a request: chat, Responses or a plain completion. Parts without text (images) are left out. */
export function promptOf(endpoint: Endpoint, request: Readonly<Record<string, unknown>>): readonly PromptMessage[] {
  switch (endpoint) {
    case "chat/completions":
      return list(request.messages).map(chatMessage);
    case "responses": {
      const instructions = typeof request.instructions === "string" ? [message("system", request.instructions)] : [];
      const input = typeof request.input === "string" ? [message("user", request.input)] : [];
      return [...instructions, ...input, ...list(request.input).map(responsesItem)];
    }
    case "completions":
      return [message("user", promptText(request.prompt))];
    case "embeddings":
    case "models":
      return [];
  }
}

/** Text of a message's content: a string, or parts with text. */
export function promptText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((part: unknown) => (typeof part === "string" ? part : isRecord(part) ? promptText(part.text) : ""))
    .join("");
}

type Json = Readonly<Record<string, unknown>>;

const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isRecord) : []);
const text = (value: unknown): string => (typeof value === "string" ? value : "");

function message(role: PromptMessage["role"], content: string, more: Partial<PromptMessage> = {}): PromptMessage {
  return { role, text: content, toolCalls: [], toolCallId: undefined, ...more };
}

function roleOf(role: unknown): PromptMessage["role"] {
  if (role === "system" || role === "developer") return "system";
  return role === "assistant" || role === "tool" ? role : "user";
}

function chatMessage(value: Json): PromptMessage {
  const toolCalls = list(value.tool_calls).map((call) => {
    const named = isRecord(call.function) ? call.function : {};
    return { id: text(call.id), name: text(named.name), arguments: text(named.arguments) };
  });
  const toolCallId = typeof value.tool_call_id === "string" ? value.tool_call_id : undefined;
  return message(roleOf(value.role), promptText(value.content), { toolCalls, toolCallId });
}

function responsesItem(value: Json): PromptMessage {
  const id = text(value.call_id ?? value.id);
  if (value.type === "function_call") {
    return message("assistant", "", { toolCalls: [{ id, name: text(value.name), arguments: text(value.arguments) }] });
  }
  if (value.type === "function_call_output") return message("tool", promptText(value.output), { toolCallId: id });
  return message(roleOf(value.role), promptText(value.content));
}
