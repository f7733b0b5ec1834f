import { isRecord } from "../is-record.ts";
import type { ChatResponse } from "./chat-model.ts";
import { fromWireFinish } from "./wire.ts";

/**
 * A completion of one choice with text and no tool calls, read without the schema, which copies every object of every answer.
 * What it gives is what `fromWireCompletion` would give; undefined for all else, which is the schema's to read or to refuse.
 */
export function plainCompletion(value: unknown, requestedModel: string): ChatResponse | undefined {
  if (!isRecord(value) || !Array.isArray(value.choices) || value.choices.length !== 1) return undefined;
  const { model = requestedModel, usage } = value;
  const choice: unknown = value.choices[0];
  if (typeof model !== "string" || !isRecord(choice) || !isRecord(choice.message)) return undefined;
  const { content, refusal, tool_calls: calls, reasoning_content: apart, reasoning: thought } = choice.message;
  if (typeof content !== "string" || content === "") return undefined;
  if (!isTextOrNothing(refusal) || !isTextOrNothing(apart) || !isTextOrNothing(thought)) return undefined;
  if (calls !== undefined && calls !== null && !(Array.isArray(calls) && calls.length === 0)) return undefined;
  const reasoning = apart ?? thought ?? "";
  const finish = choice.finish_reason;
  return {
    content,
    ...(reasoning === "" ? {} : { reasoning }),
    toolCalls: [],
    finishReason: fromWireFinish(typeof finish === "string" ? finish : undefined),
    ...usageOf(usage),
    model,
  };
}

const isTextOrNothing = (value: unknown): value is string | null | undefined =>
  value === undefined || value === null || typeof value === "string";

function usageOf(usage: unknown): Pick<ChatResponse, "usage"> {
  if (!isRecord(usage)) return {};
  const { prompt_tokens: promptTokens, completion_tokens: completionTokens } = usage;
  return isCount(promptTokens) && isCount(completionTokens) ? { usage: { promptTokens, completionTokens } } : {};
}

const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
