import { hash } from "node:crypto";

/*
 * A line of tape.jsonl is {"sum":"…","record":{…}}. The sum is over the sum before it and the record's text, so that a
 * changed, missing, added or moved line is seen; it is no signature.
 */

const SUM_LENGTH = 16;
const HEAD = '{"sum":"';
const MIDDLE = '","record":';
export const FIRST_SUM = "";

export interface SealedLine {
  readonly sum: string;
  readonly line: string;
}

export function sealLine(previous: string, record: unknown): SealedLine {
  const text = JSON.stringify(record);
  const sum = sumOf(previous, text);
  return { sum, line: `${HEAD}${sum}${MIDDLE}${text}}\n` };
}

/** The record's text and sum; `intact` is false where the sum does not follow from the line before. */
export function openLine(
  previous: string,
  line: string,
): { readonly sum: string; readonly text: string; readonly intact: boolean } | undefined {
  const textAt = HEAD.length + SUM_LENGTH + MIDDLE.length;
  if (!line.startsWith(HEAD) || !line.endsWith("}") || !line.startsWith(MIDDLE, HEAD.length + SUM_LENGTH)) {
    return undefined;
  }
  const sum = line.slice(HEAD.length, HEAD.length + SUM_LENGTH);
  const text = line.slice(textAt, -1);
  return { sum, text, intact: sumOf(previous, text) === sum };
}

const sumOf = (previous: string, text: string): string => hash("sha256", `${previous}${text}`).slice(0, SUM_LENGTH);
