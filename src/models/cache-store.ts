import { closeSync, ftruncateSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import { appendLines } from "../append-lines.ts";
import { RootstepError } from "../errors.ts";
import type { ChatResponse } from "./chat-model.ts";
import { chatResponseSchema } from "./chat-response.ts";

const recordSchema = z.strictObject({
  /** SHA-256 of model, request and epoch. */
  key: z.string().regex(/^[0-9a-f]{64}$/),
  model: z.string(),
  epoch: z.number().int().nonnegative(),
  response: chatResponseSchema,
});

/** One kept answer. */
export interface CacheRecord {
  readonly key: string;
  readonly model: string;
  readonly epoch: number;
  readonly response: ChatResponse;
}

export interface CacheStore {
  get(key: string): Promise<ChatResponse | undefined>;
  /** Resolves when the record is safe. */
  set(record: CacheRecord): Promise<void>;
}

export function memoryStore(): CacheStore {
  const answers = new Map<string, ChatResponse>();
  return {
    get: async (key) => answers.get(key),
    set: async ({ key, response }) => {
      answers.set(key, response);
    },
  };
}

export interface FileStore extends CacheStore {
  /** Bytes of an unfinished last line (a process died while writing it) that were cut off on opening; 0 where none. */
  readonly tornBytes: number;
  readonly size: number;
  close(): Promise<void>;
}

/**
 * Answers in a JSON Lines file, read once on opening and appended to; answers that come at the same time are one write. What
 * was set survives the death of the process; a power cut may take what the system had not yet written to the disk, and is
 * asked again. One process at a time writes to it.
 * @throws RootstepError FILE_UNREADABLE; RUN_CORRUPT naming the line where one before the last is no record
 */
export async function openFileStore(path: string): Promise<FileStore> {
  const { descriptor, bytes } = openForAppend(path);
  const answers = new Map<string, ChatResponse>();
  const end = bytes.lastIndexOf(0x0a) + 1;
  const tornBytes = bytes.byteLength - end;
  try {
    bytes
      .toString("utf8", 0, end)
      .split("\n")
      .slice(0, -1)
      .forEach((line, position) => {
        const record = parseRecord(line, `${path}:${position + 1}`);
        answers.set(record.key, record.response);
      });
    // Without this, the next record would be glued to the torn one.
    if (tornBytes > 0) ftruncateSync(descriptor, end);
  } catch (error) {
    closeSync(descriptor);
    throw error instanceof RootstepError ? error : unreadable(path, error);
  }

  const lines = appendLines(descriptor, end, (cause) => unreadable(path, cause));
  return {
    tornBytes,
    get size() {
      return answers.size;
    },
    get: async (key) => answers.get(key),
    async set(record) {
      if (answers.has(record.key)) return;
      answers.set(record.key, record.response);
      await lines.appendSoon(JSON.stringify(record));
    },
    close: async () => lines.close(),
  };
}

function openForAppend(path: string): { descriptor: number; bytes: Buffer } {
  try {
    mkdirSync(dirname(path), { recursive: true });
    closeSync(openSync(path, "a", 0o600)); // prompts and answers are the owner's alone
    return { descriptor: openSync(path, "r+"), bytes: readFileSync(path) };
  } catch (error) {
    throw unreadable(path, error);
  }
}

const unreadable = (path: string, cause: unknown): RootstepError =>
  new RootstepError("FILE_UNREADABLE", { what: "The model cache cannot be read or written", where: path, cause });

function parseRecord(line: string, where: string): CacheRecord {
  try {
    const { response, ...rest } = recordSchema.parse(JSON.parse(line));
    const { reasoning, usage, ...always } = response;
    return {
      ...rest,
      response: {
        ...always,
        ...(reasoning === undefined ? {} : { reasoning }),
        ...(usage === undefined ? {} : { usage }),
      },
    };
  } catch (cause) {
    throw new RootstepError("RUN_CORRUPT", {
      what: "A line of the model cache is no record",
      where,
      hint: "Delete the line or the file: answers that are missing are asked again.",
      cause,
    });
  }
}
