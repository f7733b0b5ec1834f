import { isRecord } from "../../src/is-record.ts";

/*
 * Rewrites ids (or strikes out secrets) in a recorded body without losing its pieces. In a stream an id can be cut in
 * two anywhere: between two chunks, or between the deltas of two events.
 */

type Rewrite = (text: string) => string;

/** The body's pieces with `rewrite` applied to its text. The same array where nothing changes. */
export function rewriteChunks(chunks: readonly Buffer[], rewrite: Rewrite): readonly Buffer[] {
  const [only] = chunks;
  const bytes = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
  const text = bytes.toString("utf8");
  // No text: nothing an id could stand in.
  const isText = (): boolean => !text.includes("\uFFFD") || Buffer.from(text, "utf8").equals(bytes);
  if (!looksLikeEvents(text)) {
    const rewritten = rewrite(text);
    return rewritten === text || !isText() ? chunks : [Buffer.from(rewritten, "utf8")];
  }
  if (!isText()) return chunks;
  const events = splitEvents(text);
  rewriteEvents(events, rewrite);
  if (events.every((event) => event.rewritten === undefined)) return chunks;
  return spread(events, chunks);
}

interface StreamEvent {
  readonly raw: string;
  rewritten: string | undefined;
}

const looksLikeEvents = (text: string): boolean => /^(?:data|event|id|retry|):/mu.test(text.slice(0, 200));

const splitEvents = (text: string): StreamEvent[] =>
  text.split(/(?<=\r?\n\r?\n)/u).map((raw) => ({ raw, rewritten: undefined }));

/** A string somewhere in an event's JSON, and how to put another one there. */
interface Leaf {
  readonly event: number;
  readonly text: string;
  set(text: string): void;
}

function rewriteEvents(events: readonly StreamEvent[], rewrite: Rewrite): void {
  const values = events.map(({ raw }) => dataOf(raw));
  /** Deltas of one field belong together; every other string stands alone. */
  const fields = new Map<string, Leaf[]>();
  values.forEach((value, event) => {
    if (value === undefined) return;
    const name = ["type", "item_id", "output_index", "content_index", "summary_index"]
      .map((key) => value[key])
      .join(" ");
    collect(value, name, (path, text, set) => {
      const key = /\.delta(?:\.|$)|\.choices\.\d+\.text$/u.test(path) ? path : `${event} ${path}`;
      const leaves = fields.get(key) ?? [];
      leaves.push({ event, text, set });
      fields.set(key, leaves);
    });
  });
  const changed = new Set<number>();
  for (const leaves of fields.values()) rewriteField(leaves, rewrite, changed);
  for (const at of changed) {
    const event = events[at];
    if (event !== undefined) event.rewritten = withData(event.raw, values[at]);
  }
  events.forEach((event, at) => {
    if (values[at] !== undefined) return; // comments and what is no JSON
    const plain = rewrite(event.raw);
    if (plain !== event.raw) event.rewritten = plain;
  });
}

function rewriteField(leaves: readonly Leaf[], rewrite: Rewrite, changed: Set<number>): void {
  const whole = leaves.map(({ text }) => text).join("");
  const rewritten = rewrite(whole);
  if (rewritten === whole) return;
  // Each piece keeps its length, the last one takes what is left: ids are mostly as long as those they replace.
  let from = 0;
  leaves.forEach(({ event, text, set }, position) => {
    const piece = position === leaves.length - 1 ? rewritten.slice(from) : rewritten.slice(from, from + text.length);
    from += text.length;
    if (piece === text) return;
    set(piece);
    changed.add(event);
  });
}

/** Visits the strings of a value. A list's items go by their `index` where they have one, as the deltas of a choice do. */
function collect(
  value: unknown,
  path: string,
  visit: (path: string, text: string, set: (text: string) => void) => void,
): void {
  if (Array.isArray(value)) {
    value.forEach((item: unknown, position) => {
      const at = isRecord(item) && typeof item.index === "number" ? item.index : position;
      const set = (text: string): void => {
        value[position] = text;
      };
      if (typeof item === "string") visit(`${path}.${at}`, item, set);
      else collect(item, `${path}.${at}`, visit);
    });
    return;
  }
  if (!isRecord(value)) return;
  for (const [key, item] of Object.entries(value)) {
    const set = (text: string): void => {
      value[key] = text;
    };
    if (typeof item === "string") visit(`${path}.${key}`, item, set);
    else collect(item, `${path}.${key}`, visit);
  }
}

const DATA_LINE = /^data: ?(.*)$/gmu;

function dataOf(raw: string): Record<string, unknown> | undefined {
  const data = [...raw.matchAll(DATA_LINE)].map(([, line]) => (line ?? "").replace(/\r$/u, "")).join("\n");
  if (!data.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(data);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function withData(raw: string, value: unknown): string {
  let put = false;
  return raw.replace(DATA_LINE, (line) => {
    if (put) return "";
    put = true;
    return `data: ${JSON.stringify(value)}${line.endsWith("\r") ? "\r" : ""}`;
  });
}

/** Puts each event into the chunk in which its recording ended. */
function spread(events: readonly StreamEvent[], chunks: readonly Buffer[]): readonly Buffer[] {
  const texts = chunks.map(() => "");
  const ends: number[] = [];
  let total = 0;
  for (const { length } of chunks) {
    total += length;
    ends.push(total);
  }
  let position = 0;
  let chunk = 0;
  for (const { raw, rewritten } of events) {
    position += Buffer.byteLength(raw);
    while (chunk < chunks.length - 1 && (ends[chunk] ?? 0) < position) chunk++;
    texts[chunk] = `${texts[chunk] ?? ""}${rewritten ?? raw}`;
  }
  return texts.filter((text) => text !== "").map((text) => Buffer.from(text, "utf8"));
}
