import { hash } from "node:crypto";
import { closeSync, existsSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";
import { RootstepError } from "../../src/errors.ts";

/*
 * Bodies by content: one line {"sha256":"…","text":"…"} each (or "base64" where the bytes are no UTF-8), appended once.
 * One file in place of one per body: a run of 100,000 calls stays a folder one can copy.
 */

const HEAD = '{"sha256":"';
const SHA_LENGTH = 64;
const READ_SIZE = 8 * 1024 * 1024;
const WINDOW_SIZE = 256 * 1024;

export function bodyAddress(bytes: Uint8Array): string {
  return hash("sha256", bytes);
}

export interface BodyWriter {
  /** Appends the body unless it is there. @returns its address */
  put(bytes: Uint8Array): string;
  close(): void;
}

/** @throws RootstepError FILE_UNREADABLE */
export function createBodyWriter(file: string): BodyWriter {
  const known = new Set<string>();
  const descriptor = openSync(file, "ax");
  return {
    put(bytes) {
      const address = bodyAddress(bytes);
      if (known.has(address)) return address;
      known.add(address);
      const text = utf8(bytes);
      const content = text === undefined ? { base64: Buffer.from(bytes).toString("base64") } : { text };
      appendLine(descriptor, `${JSON.stringify({ sha256: address, ...content })}\n`, file);
      return address;
    },
    close() {
      fsyncSync(descriptor);
      closeSync(descriptor);
    },
  };
}

/** One write, so that a crash tears the last line at most. @throws RootstepError FILE_UNREADABLE */
export function appendLine(descriptor: number, line: string, file: string): void {
  try {
    const bytes = Buffer.from(line, "utf8");
    for (let written = 0; written < bytes.length; ) written += writeSync(descriptor, bytes, written);
  } catch (cause) {
    throw new RootstepError("FILE_UNREADABLE", { what: "could not append to the tape", where: file, cause });
  }
}

/** The text, if decoding and encoding it again gives the same bytes. */
function utf8(bytes: Uint8Array): string | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  return text.includes("\uFFFD") && !Buffer.from(text, "utf8").equals(bytes) ? undefined : text;
}

interface BodyPlace {
  readonly at: number;
  readonly length: number;
  readonly line: number;
}

export interface BodyReader {
  has(address: string): boolean;
  /** @throws RootstepError TAPE_DAMAGED naming file:line where the content is not what its address says */
  get(address: string): Buffer;
  /** Every body in file order, for validation. */
  readonly addresses: Iterable<string>;
  /** True where the last line is cut off. */
  readonly torn: boolean;
  readonly lines: number;
  close(): void;
}

/** Finds the lines without reading what is in them: 100,000 bodies are open in a fraction of a second. */
export function openBodies(file: string): BodyReader {
  if (!existsSync(file))
    throw new RootstepError("FILE_MISSING", { what: "the tape's bodies are missing", where: file });
  const descriptor = openSync(file, "r");
  const { places, torn, lines } = indexLines(descriptor, file);
  const read = windowReader(descriptor);
  return {
    has: (address) => places.has(address),
    get(address) {
      const place = places.get(address);
      if (place === undefined) {
        throw new RootstepError("TAPE_DAMAGED", { what: `the body ${address.slice(0, 12)} is not there`, where: file });
      }
      return readBody(read(place.at, place.length), place.line, address, file);
    },
    addresses: places.keys(),
    torn,
    lines,
    close: () => closeSync(descriptor),
  };
}

function indexLines(descriptor: number, file: string) {
  const places = new Map<string, BodyPlace>();
  const { size } = fstatSync(descriptor);
  const buffer = Buffer.allocUnsafe(Math.min(size, READ_SIZE) + 1);
  let [at, line] = [0, 0];
  let head = ""; // the first characters of the line at hand
  let position = 0;
  while (position < size) {
    const read = readSync(descriptor, buffer, 0, Math.min(buffer.length, size - position), position);
    if (read === 0) break;
    let from = 0;
    for (let end = buffer.indexOf(0x0a); end >= 0 && end < read; end = buffer.indexOf(0x0a, from)) {
      head += buffer.toString("latin1", from, Math.min(end, from + HEAD.length + SHA_LENGTH - head.length));
      line++;
      places.set(addressIn(head, `${file}:${line}`), { at, length: position + end - at, line });
      from = end + 1;
      at = position + from;
      head = "";
    }
    head += buffer.toString("latin1", from, Math.min(read, from + HEAD.length + SHA_LENGTH - head.length));
    position += read;
  }
  return { places, torn: at < size, lines: line };
}

function addressIn(head: string, where: string): string {
  const address = head.slice(HEAD.length, HEAD.length + SHA_LENGTH);
  if (head.startsWith(HEAD) && /^[0-9a-f]{64}$/u.test(address)) return address;
  throw new RootstepError("TAPE_DAMAGED", { what: "the line is no body with its sha256", where });
}

/** Reads ahead: bodies are asked for in about the order in which they were written. */
function windowReader(descriptor: number): (at: number, length: number) => Buffer {
  let [from, window] = [0, Buffer.alloc(0)];
  return (at, length) => {
    if (at < from || at + length > from + window.length) {
      window = Buffer.allocUnsafeSlow(Math.max(length, WINDOW_SIZE));
      from = at;
      window = window.subarray(0, readSync(descriptor, window, 0, window.length, at));
    }
    return window.subarray(at - from, at - from + length);
  };
}

function readBody(bytes: Buffer, line: number, address: string, file: string): Buffer {
  const where = `${file}:${line}`;
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch (cause) {
    throw new RootstepError("TAPE_DAMAGED", { what: "the line is not JSON", where, cause });
  }
  const body = contentOf(value);
  if (body !== undefined && bodyAddress(body) === address) return body;
  throw new RootstepError("TAPE_DAMAGED", {
    what: "the body was changed: its content does not match its sha256",
    where,
  });
}

function contentOf(value: unknown): Buffer | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if ("text" in value && typeof value.text === "string") return Buffer.from(value.text, "utf8");
  if ("base64" in value && typeof value.base64 === "string") return Buffer.from(value.base64, "base64");
  return undefined;
}
