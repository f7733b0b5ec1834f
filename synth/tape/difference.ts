import { isRecord } from "../../src/is-record.ts";
import { maskText } from "./masks.ts";

const BEFORE = 40;
const AFTER = 80;

/** The first place where two JSON values part, not counting what masks cover; undefined if there is none. */
export function firstDifference(recorded: unknown, asked: unknown, path = ""): string | undefined {
  if (Array.isArray(recorded) && Array.isArray(asked)) {
    for (let at = 0; at < Math.max(recorded.length, asked.length); at++) {
      const found = firstDifference(recorded[at], asked[at], `${path}[${at}]`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (isRecord(recorded) && isRecord(asked)) {
    for (const key of new Set([...Object.keys(recorded), ...Object.keys(asked)])) {
      const found = firstDifference(recorded[key], asked[key], path === "" ? key : `${path}.${key}`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  const [a, b] = [leaf(recorded), leaf(asked)];
  if (a === b || maskText(a).text === maskText(b).text) return undefined;
  return sideBySide(path === "" ? "the body" : path, a, b);
}

/** Both texts around the first character that differs. */
export function sideBySide(place: string, a: string, b: string): string {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return `${place}, character ${at}\n    recorded: ${excerpt(a, at)}\n    asked:    ${excerpt(b, at)}`;
}

function excerpt(text: string, at: number): string {
  const from = Math.max(0, at - BEFORE);
  const shown = text.slice(from, at + AFTER).replace(/\s/gu, " ");
  return `${from > 0 ? "…" : ""}${shown}${text.length > at + AFTER ? "…" : ""}${at >= text.length ? "⟨end⟩" : ""}`;
}

function leaf(value: unknown): string {
  if (value === undefined) return "(absent)";
  return typeof value === "string" ? value : JSON.stringify(value);
}
