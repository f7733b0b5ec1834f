import { RecordError } from "./record-error.ts";

/** The longest record read unless the caller says otherwise: 64 MiB. */
export const MAX_RECORD_BYTES = 64 * 2 ** 20;

/** The deepest nesting read. Deeper values would overflow the stack of code that walks them. */
export const MAX_NESTING = 200;

/**
 * What a value that does not parse means: `never` cut (a newline follows it), cut `if-unclosed` (it is a whole file), or
 * `always` (the last line of a file, without its newline).
 */
export type Cut = "never" | "if-unclosed" | "always";

/**
 * One JSON value from its bytes, checked for what JSON.parse lets through or reports badly.
 *
 * @param location `file:line` or file, named in errors
 * @throws RecordError DATA_INVALID (NUL bytes, not UTF-8, nested too deep), DATA_NOT_JSON, DATA_TRUNCATED
 */
export function parseJsonBytes(bytes: Uint8Array, location: string, cut: Cut = "never"): unknown {
  const nul = bytes.indexOf(0);
  if (nul >= 0) {
    throw invalid(location, `NUL byte at byte ${nul}`, "The file was damaged or is UTF-16: copy it again as UTF-8.");
  }
  const text = decodeUtf8(bytes, location, cut);
  const value = parseText(text, location, cut);
  if (isTooDeep(value)) throw invalid(location, `nested deeper than ${MAX_NESTING} levels`);
  return value;
}

/** True where the bytes begin with a UTF-16 byte order mark. */
export function startsAsUtf16(bytes: Uint8Array): boolean {
  return (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
}

/** The bytes without a leading UTF-8 byte order mark. */
export function withoutBom<T extends Uint8Array>(bytes: T): Uint8Array {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

export function tooLong(location: string, maxBytes: number): RecordError {
  return invalid(location, `record longer than ${maxBytes} bytes`, "Split the record, or check that lines end in LF.");
}

export function utf16(location: string): RecordError {
  return invalid(location, "the file is UTF-16", "Save the file as UTF-8.");
}

function invalid(location: string, message: string, hint?: string): RecordError {
  return new RecordError("DATA_INVALID", location, [{ path: "", message }], hint);
}

function decodeUtf8(bytes: Uint8Array, location: string, cut: Cut): string {
  try {
    // At a cut end half a character is no fault of the encoding: `stream` keeps it back, and the JSON is incomplete anyway.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: cut !== "never" });
  } catch {
    throw invalid(location, "the text is not UTF-8", "Save the file as UTF-8.");
  }
}

function parseText(text: string, location: string, cut: Cut): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // V8's message quotes the data, which may hold secrets: only the position is taken over.
    const position = /at position (\d+)/.exec(error instanceof Error ? error.message : "")?.[1];
    const where = position === undefined ? "" : ` at character ${position}`;
    if (cut === "always" || (cut === "if-unclosed" && isUnclosed(text))) {
      const message = text.trim() === "" ? "the file is empty" : "the JSON ends before it is complete";
      throw new RecordError("DATA_TRUNCATED", location, [{ path: "", message }]);
    }
    throw new RecordError("DATA_NOT_JSON", location, [{ path: "", message: `not JSON${where}` }]);
  }
}

/** True if a string, array or object is still open at the end, and none was closed by the wrong bracket. */
function isUnclosed(text: string): boolean {
  const open: string[] = [];
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (inString) {
      if (character === "\\") i++;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === "{") open.push("}");
    else if (character === "[") open.push("]");
    else if ((character === "}" || character === "]") && open.pop() !== character) return false;
  }
  return inString || open.length > 0 || text.trim() === "";
}

/** Walks with a list, not by recursion: the value may be deeper than the stack. */
function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_NESTING) return true;
    level = level.flatMap((parent) => {
      if (typeof parent !== "object" || parent === null) return [];
      return Object.values(parent).filter((child) => typeof child === "object" && child !== null);
    });
  }
  return false;
}
