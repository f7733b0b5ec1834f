import type { ChatMessage, ChatRequest } from "./chat-model.ts";
import { canonicalJson } from "./content-key.ts";

type Messages = ChatRequest["messages"];

interface Known {
  /** The messages as they were: a system that goes on with one array must not get the text of its earlier turn. */
  readonly fields: readonly (string | undefined)[];
  readonly json: Buffer;
  /** The latest body made with it, and the fields beside the messages. */
  body?: { readonly fields: string; readonly bytes: Buffer };
}

const known = new WeakMap<Messages, Known>();

/**
 * The canonical JSON of messages, as UTF-8. Kept per array, because the cache key, the body on the wire and the budget all
 * need it and long logs are dear to quote; a method that asks the same again (an epoch) gives the same array.
 */
export function messagesJson(messages: Messages): Buffer {
  return messages.every(isPlain) ? entryOf(messages).json : encoded(messages);
}

/**
 * A JSON object of these fields and `messages`, as UTF-8. The same bytes again where the same is asked again.
 *
 * @param fields JSON object of all other fields, at least one
 * @param messages plain ones only (`isPlain`)
 */
export function withMessages(fields: string, messages: Messages): Buffer {
  const entry = entryOf(messages);
  if (entry.body?.fields !== fields) {
    const head = Buffer.from(`${fields.slice(0, -1)},"messages":`, "utf8");
    entry.body = { fields, bytes: Buffer.concat([head, entry.json, Buffer.from("}")]) };
  }
  return entry.body.bytes;
}

function entryOf(messages: Messages): Known {
  const earlier = known.get(messages);
  if (earlier !== undefined && isAsItWas(messages, earlier.fields)) return earlier;
  const fields = messages.flatMap(({ role, content, name }) => [role, content, name]);
  const entry: Known = { fields, json: encodedPlain(messages) };
  known.set(messages, entry);
  return entry;
}

/** True for a message that is the same on the wire and in the interface. */
export function isPlain({ toolCalls, toolCallId }: ChatMessage): boolean {
  return toolCalls === undefined && toolCallId === undefined;
}

/**
 * What `canonicalJson` makes of plain messages, without its walk, for their fields are known and few; and without putting the
 * text together first: copies of long logs are most of what the garbage collector has to clear away in an evaluation.
 */
function encodedPlain(messages: Messages): Buffer {
  const pieces = messages.flatMap(({ role, content, name }, i) => [
    `${i === 0 ? "[" : ","}{"content":`,
    JSON.stringify(content),
    `${name === undefined ? "" : `,"name":${JSON.stringify(name)}`},"role":${JSON.stringify(role)}}`,
  ]);
  return encodePieces([...pieces, pieces.length === 0 ? "[]" : "]"]);
}

/** Room to encode in, between two awaits only; as large as the largest prompt so far, up to a bound. */
let room = Buffer.allocUnsafe(64 * 1024);
const LARGEST_ROOM = 4 * 1024 * 1024;
/** UTF-8 bytes of a UTF-16 code unit, at most. */
const MOST_BYTES = 3;

function encodePieces(pieces: readonly string[]): Buffer {
  const most = MOST_BYTES * pieces.reduce((total, { length }) => total + length, 0);
  if (most > LARGEST_ROOM) return Buffer.from(pieces.join(""), "utf8");
  if (most > room.length) room = Buffer.allocUnsafe(most);
  let end = 0;
  for (const piece of pieces) end += room.write(piece, end, "utf8");
  return Buffer.from(room.subarray(0, end));
}

const encoded = (messages: Messages): Buffer => Buffer.from(canonicalJson(messages), "utf8");

function isAsItWas(messages: Messages, fields: Known["fields"]): boolean {
  return (
    fields.length === 3 * messages.length &&
    messages.every(
      ({ role, content, name }, i) =>
        role === fields[3 * i] && content === fields[3 * i + 1] && name === fields[3 * i + 2],
    )
  );
}
