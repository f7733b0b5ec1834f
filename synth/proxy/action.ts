import { RootstepError } from "../../src/errors.ts";
import { isRecord } from "../../src/is-record.ts";
import { field, parsedObject } from "./request.ts";
import { responsesEvents, type ServerEvent, words } from "./responses-events.ts";
import type { ProxyRecording } from "./tape-recordings.ts";

/** What call N answers in the place of its recording. */
export type Action =
  | { readonly kind: "text"; readonly text: string }
  /** A whole answer, as the endpoint would give it without streaming. */
  | { readonly kind: "answer"; readonly value: Readonly<Record<string, unknown>> };

/** Reads an action: a JSON object with `choices` or `output` is a whole answer, anything else the text to say. */
export function parseAction(text: string): Action {
  const value = parsedObject(Buffer.from(text, "utf8"));
  if (value !== undefined && (Array.isArray(value.choices) || Array.isArray(value.output))) {
    return { kind: "answer", value };
  }
  return { kind: "text", text: text.replace(/\r?\n$/u, "") };
}

export interface SubstitutedAnswer {
  readonly contentType: string;
  readonly chunks: readonly Buffer[];
}

/**
 * The action as the program expects it: whole or streamed as it asked, with the recording's id, model and usage.
 * @throws RootstepError USAGE where the call's endpoint has no text to replace
 */
export function substitute(action: Action, recording: ProxyRecording, request: Buffer): SubstitutedAnswer {
  const asked = parsedObject(request);
  const recorded = recordedAnswer(Buffer.concat([...recording.chunks()]).toString("utf8"));
  const isStream = asked?.stream === true;
  switch (recording.call.endpoint) {
    case "chat/completions": {
      const answer = action.kind === "answer" ? action.value : chatAnswer(action.text, recorded);
      if (!isStream) return whole(answer);
      return events(chatChunks(answer, field(asked?.stream_options, "include_usage") === true), true);
    }
    case "completions": {
      const answer = action.kind === "answer" ? action.value : completionAnswer(action.text, recorded);
      return isStream ? events([{ data: answer }], true) : whole(answer);
    }
    case "responses": {
      const answer = action.kind === "answer" ? action.value : responsesAnswer(action.text, recorded);
      return isStream ? events(responsesEvents(answer), false) : whole(answer);
    }
    case "embeddings":
    case "models":
      throw new RootstepError("USAGE", {
        what: `call ${recording.index} is a request for ${recording.call.endpoint}: there is no action to replace`,
        where: "--cut",
        hint: "Choose another call; `rootstep replay show TAPE` lists them.",
      });
  }
}

type Json = Readonly<Record<string, unknown>>;

/** What the recording says of itself: id, model, usage; of a stream, gathered from its events. */
function recordedAnswer(text: string): Json {
  const plain = parsedObject(Buffer.from(text, "utf8"));
  if (plain !== undefined) return plain;
  let gathered: Record<string, unknown> = {};
  for (const [, data] of text.matchAll(/^data: ?(\{.*)$/gmu)) {
    const value = parsedObject(Buffer.from(data ?? "", "utf8"));
    if (value === undefined) continue;
    const inner = isRecord(value.response) ? value.response : value; // events of Responses carry the answer inside
    gathered = {
      ...gathered,
      ...(isRecord(inner.usage) || inner.usage === undefined ? inner : { ...inner, usage: gathered.usage }),
    };
  }
  return gathered;
}

function envelope(recorded: Json, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(keys.filter((key) => recorded[key] !== undefined).map((key) => [key, recorded[key]]));
}

const CHAT_KEYS = ["id", "created", "model", "system_fingerprint", "service_tier", "usage"];

function chatAnswer(text: string, recorded: Json): Json {
  const message = { role: "assistant", content: text };
  return {
    ...envelope(recorded, CHAT_KEYS),
    object: "chat.completion",
    choices: [{ index: 0, message, logprobs: null, finish_reason: "stop" }],
  };
}

function completionAnswer(text: string, recorded: Json): Json {
  return {
    ...envelope(recorded, CHAT_KEYS),
    object: "text_completion",
    choices: [{ index: 0, text, logprobs: null, finish_reason: "stop" }],
  };
}

function responsesAnswer(text: string, recorded: Json): Json {
  const content = [{ type: "output_text", text, annotations: [] }];
  const id = `msg_${String(recorded.id ?? "0")}`;
  return {
    ...recorded,
    status: "completed",
    output: [{ type: "message", id, role: "assistant", status: "completed", content }],
  };
}

/** A chat completion as its stream: role, words, tool calls, finish, usage. */
function chatChunks(answer: Json, includeUsage: boolean): ServerEvent[] {
  const head = {
    ...envelope(
      answer,
      CHAT_KEYS.filter((key) => key !== "usage"),
    ),
    object: "chat.completion.chunk",
  };
  const choices: readonly unknown[] = Array.isArray(answer.choices) ? answer.choices : [];
  const chunk = (index: unknown, delta: Json, finish: unknown = null): ServerEvent => ({
    data: { ...head, choices: [{ index, delta, finish_reason: finish }] },
  });
  const made = choices.flatMap((choice, position) => {
    const index = field(choice, "index") ?? position;
    const message = field(choice, "message");
    const content = field(message, "content");
    const calls = field(message, "tool_calls");
    const toolCalls: readonly unknown[] = Array.isArray(calls) ? calls : [];
    return [
      chunk(index, { role: "assistant", content: "" }),
      ...words(content).map((piece) => chunk(index, { content: piece })),
      ...toolCalls.map((call, at) => chunk(index, { tool_calls: [{ index: at, ...(isRecord(call) ? call : {}) }] })),
      chunk(index, {}, field(choice, "finish_reason") ?? "stop"),
    ];
  });
  const usage = answer.usage;
  return includeUsage && usage !== undefined ? [...made, { data: { ...head, choices: [], usage } }] : made;
}

function whole(answer: Json): SubstitutedAnswer {
  return { contentType: "application/json", chunks: [Buffer.from(JSON.stringify(answer), "utf8")] };
}

function events(list: readonly ServerEvent[], done: boolean): SubstitutedAnswer {
  const lines = list.map(
    ({ event, data }) => `${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`,
  );
  return {
    contentType: "text/event-stream; charset=utf-8",
    chunks: [...lines, ...(done ? ["data: [DONE]\n\n"] : [])].map((line) => Buffer.from(line, "utf8")),
  };
}
