import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { RootstepError } from "../../src/errors.ts";
import { appendLine, createBodyWriter } from "./bodies.ts";
import {
  BODIES_FILE,
  type StoredCall,
  type StoredToolExchange,
  TAPE_FILE,
  type TapeEnd,
  type TapeHeader,
} from "./folder-schema.ts";
import { FIRST_SUM, sealLine } from "./sealed-line.ts";

export interface TapeWriter {
  /** Stores a body once. @returns its sha256 */
  body(bytes: Uint8Array): string;
  call(call: StoredCall): void;
  tool(exchange: StoredToolExchange): void;
  /** The last line: a tape without it was interrupted. */
  end(end: TapeEnd): void;
  close(): void;
  /** Deletes the files of a closed tape. */
  discard(): void;
  readonly calls: number;
  readonly toolExchanges: number;
}

/**
 * Begins a tape in a folder that holds none. Lines are appended as calls end, bodies before the line that names them, so
 * that a kill at any moment loses no complete call.
 *
 * @throws RootstepError USAGE where the folder holds a tape; FILE_UNREADABLE
 */
export function createTapeWriter(folder: string, header: TapeHeader): TapeWriter {
  const file = join(folder, TAPE_FILE);
  if (existsSync(file)) {
    throw new RootstepError("USAGE", {
      what: "the folder holds a tape already; a tape is never written over",
      where: file,
      hint: "Choose another --out folder.",
    });
  }
  const { bodies, descriptor } = openFiles(folder, file);
  let sum = FIRST_SUM;
  let calls = 0;
  let toolExchanges = 0;
  const append = (record: unknown): void => {
    const sealed = sealLine(sum, record);
    appendLine(descriptor, sealed.line, file);
    sum = sealed.sum;
  };
  append(header);
  return {
    body: (bytes) => bodies.put(bytes),
    call(call) {
      append(call);
      calls++;
    },
    tool(exchange) {
      append(exchange);
      toolExchanges++;
    },
    end: append,
    close() {
      bodies.close();
      fsyncSync(descriptor);
      closeSync(descriptor);
    },
    discard() {
      for (const name of [TAPE_FILE, BODIES_FILE]) rmSync(join(folder, name), { force: true });
    },
    get calls() {
      return calls;
    },
    get toolExchanges() {
      return toolExchanges;
    },
  };
}

function openFiles(folder: string, file: string) {
  try {
    mkdirSync(folder, { recursive: true });
    return { bodies: createBodyWriter(join(folder, BODIES_FILE)), descriptor: openSync(file, "ax") };
  } catch (cause) {
    throw new RootstepError("FILE_UNREADABLE", { what: "the tape cannot be made", where: folder, cause });
  }
}
