import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { RootstepError } from "../errors.ts";
import { fileError, replaceWhole } from "./files.ts";
import { GzipError, gunzipped } from "./gunzip.ts";
import { MAX_RECORD_BYTES, parseJsonBytes, startsAsUtf16, tooLong, utf16, withoutBom } from "./json-bytes.ts";
import { RecordError } from "./record-error.ts";

export interface JsonLinesOptions {
  /** Told of each bad line, which is then skipped. Without it the first bad line ends the reading with its error. */
  readonly onBad?: ((error: RootstepError) => void) | undefined;
  /** Longer lines are bad; at most this much is held in memory. Default 64 MiB. */
  readonly maxLineBytes?: number | undefined;
}

export interface JsonLine {
  /** 1-based. */
  readonly line: number;
  readonly value: unknown;
}

/**
 * Streams the values of a JSONL file, or of a gzipped one (`.gz`), without loading it whole.
 * Blank lines and a UTF-8 byte order mark are skipped. Good lines before a bad one are always yielded first.
 *
 * @throws RootstepError FILE_MISSING, FILE_UNREADABLE; and unless `onBad` takes them DATA_NOT_JSON, DATA_INVALID (NUL bytes,
 * not UTF-8, too long, too deep, damaged gzip), DATA_TRUNCATED, each naming `file:line`
 */
export async function* readJsonLines(file: string, options: JsonLinesOptions = {}): AsyncGenerator<JsonLine> {
  for await (const found of readRawLines(file, options.maxLineBytes ?? MAX_RECORD_BYTES)) {
    const result = found instanceof RecordError ? found : parseLine(found, file);
    if (!(result instanceof RecordError)) yield result;
    else if (options.onBad === undefined) throw result;
    else options.onBad(result);
  }
}

/**
 * Writes one JSON value per line, gzipped if the name ends in `.gz`. The file appears whole or not at all.
 * @throws RootstepError FILE_UNREADABLE; whatever iterating over `values` throws
 */
export async function writeJsonLines(file: string, values: Iterable<unknown> | AsyncIterable<unknown>): Promise<void> {
  await replaceWhole(file, async (temporary) => {
    const lines = Readable.from(jsonLines(values));
    // Opened here: a stream that opens the file itself may do so after its failure was cleaned up.
    const output = (await open(temporary, "wx")).createWriteStream({ flush: true });
    if (file.endsWith(".gz")) await pipeline(lines, createGzip(), output);
    else await pipeline(lines, output);
  });
}

async function* jsonLines(values: Iterable<unknown> | AsyncIterable<unknown>): AsyncGenerator<string> {
  for await (const value of values) yield `${JSON.stringify(value)}\n`;
}

interface RawLine {
  readonly line: number;
  readonly bytes: Uint8Array;
  /** False for a last line without its newline. */
  readonly terminated: boolean;
}

function parseLine({ line, bytes, terminated }: RawLine, file: string): JsonLine | RecordError {
  try {
    return { line, value: parseJsonBytes(bytes, `${file}:${line}`, terminated ? "never" : "always") };
  } catch (error) {
    if (error instanceof RecordError) return error;
    throw error;
  }
}

/** The lines that are not blank, as bytes. What is wrong with a line comes as a value, so that the reader can go on. */
async function* readRawLines(file: string, maxBytes: number): AsyncGenerator<RawLine | RecordError> {
  let line = 1;
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  let skipping = false;
  let first = true;

  const take = (terminated: boolean): RawLine | undefined => {
    const whole = Buffer.concat(held);
    const bytes = line === 1 ? withoutBom(whole) : whole;
    return isBlank(bytes) ? undefined : { line, bytes, terminated };
  };
  /** Adds to the line being gathered; the error if that makes it too long. */
  const hold = (piece: Uint8Array): RecordError | undefined => {
    if (skipping) return undefined;
    heldBytes += piece.length;
    if (heldBytes <= maxBytes) {
      held.push(piece);
      return undefined;
    }
    skipping = true;
    held = [];
    return tooLong(`${file}:${line}`, maxBytes);
  };

  try {
    for await (const chunk of file.endsWith(".gz") ? gunzipped(() => readChunks(file)) : readChunks(file)) {
      if (first && startsAsUtf16(chunk)) return yield utf16(`${file}:1`);
      first = false;
      let start = 0;
      for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
        const fault = hold(chunk.subarray(start, end));
        const found = fault ?? (skipping ? undefined : take(true));
        if (found !== undefined) yield found;
        held = [];
        heldBytes = 0;
        skipping = false;
        line++;
        start = end + 1;
      }
      const fault = hold(chunk.subarray(start));
      if (fault !== undefined) yield fault;
    }
  } catch (error) {
    return yield gzipFault(error, `${file}:${line}`);
  }
  const last = skipping ? undefined : take(false);
  if (last !== undefined) yield last;
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}

async function* readChunks(file: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of createReadStream(file)) yield chunk;
  } catch (error) {
    throw fileError(error, file);
  }
}

function gzipFault(error: unknown, location: string): RecordError {
  if (!(error instanceof GzipError)) throw error;
  if (error.truncated) {
    return new RecordError("DATA_TRUNCATED", location, [{ path: "", message: "the gzip file ends early" }]);
  }
  return new RecordError(
    "DATA_INVALID",
    location,
    [{ path: "", message: "these bytes are not gzip, or damaged" }],
    "Copy the file again; records before that line are intact.",
  );
}
