import { isRecord } from "../../src/is-record.ts";
import { field } from "./request.ts";

export interface ServerEvent {
  readonly event?: string;
  readonly data: unknown;
}

type Json = Readonly<Record<string, unknown>>;

/** An answer of the Responses API as its stream of typed events, in OpenAI's order: item by item, text word by word. */
export function responsesEvents(answer: Json): ServerEvent[] {
  let sequence = 0;
  const made: ServerEvent[] = [];
  const add = (type: string, more: Json): void => {
    made.push({ event: type, data: { type, sequence_number: sequence++, ...more } });
  };
  const items: readonly unknown[] = Array.isArray(answer.output) ? answer.output : [];
  const begun = { ...answer, status: "in_progress", output: [] };
  add("response.created", { response: begun });
  add("response.in_progress", { response: begun });
  items.forEach((item, output_index) => {
    const item_id = field(item, "id");
    add("response.output_item.added", { output_index, item: emptied(item) });
    const contents = field(item, "content");
    (Array.isArray(contents) ? contents : []).forEach((part: unknown, content_index) => {
      const place = { item_id, output_index, content_index };
      const text = String(field(part, "text") ?? "");
      add("response.content_part.added", { ...place, part: isRecord(part) ? { ...part, text: "" } : part });
      for (const delta of words(text)) add("response.output_text.delta", { ...place, delta, logprobs: [] });
      add("response.output_text.done", { ...place, text, logprobs: [] });
      add("response.content_part.done", { ...place, part });
    });
    const args = field(item, "arguments");
    if (typeof args === "string") {
      for (const delta of words(args)) add("response.function_call_arguments.delta", { item_id, output_index, delta });
      add("response.function_call_arguments.done", { item_id, output_index, arguments: args });
    }
    add("response.output_item.done", { output_index, item });
  });
  add("response.completed", { response: answer });
  return made;
}

/** An item as it is before its deltas: clients append them to what is there. */
function emptied(item: unknown): unknown {
  if (!isRecord(item)) return item;
  return {
    ...item,
    status: "in_progress",
    ...(Array.isArray(item.content) ? { content: [] } : {}),
    ...(typeof item.arguments === "string" ? { arguments: "" } : {}),
  };
}

/** A text in the pieces in which it is streamed; together they are the text. */
export const words = (text: unknown): readonly string[] =>
  typeof text === "string" ? (text.match(/\s*\S+|\s+$/gu) ?? []) : [];
