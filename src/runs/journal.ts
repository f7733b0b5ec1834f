import { existsSync, ftruncateSync, openSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import type { z } from "zod";
import { appendLines } from "../append-lines.ts";
import { RootstepError } from "../errors.ts";

/**
 * An append-only JSONL file that survives SIGKILL at any moment.
 *
 * Records are written as whole lines, one after the other, so that at most the last line can be torn; opening truncates a
 * torn tail and says so in `repaired`. A broken line in the middle is damage that no crash of ours makes: RUN_CORRUPT.
 */
export interface Journal<T> {
  /** Records found when the journal was opened, in file order. */
  readonly existing: readonly T[];
  /** Bytes of a torn last line that were cut off on opening; 0 if none. */
  readonly repaired: number;
  /** The record is written when it returns. @throws RootstepError FILE_UNREADABLE */
  append(record: T): void;
  /** The record is written when it resolves, by one write with others that come at the same time. @throws as `append` */
  appendSoon(record: T): Promise<void>;
  close(): void;
}

/** Opens (or creates) a journal whose records match `schema`. @throws RootstepError RUN_CORRUPT naming file:line and field */
export function openJournal<T>(file: string, schema: z.ZodType<T>): Journal<T> {
  const bytes = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
  const intact = bytes.lastIndexOf(0x0a) + 1;
  const existing = parseLines(file, bytes.subarray(0, intact).toString("utf8"), schema);
  const descriptor = openSync(file, existsSync(file) ? "r+" : "w+");
  if (intact < bytes.length) ftruncateSync(descriptor, intact);
  const lines = appendLines(
    descriptor,
    intact,
    (cause) => new RootstepError("FILE_UNREADABLE", { what: "could not append a record", where: file, cause }),
  );
  return {
    existing,
    repaired: bytes.length - intact,
    append: (record) => lines.append(JSON.stringify(record)),
    appendSoon: (record) => lines.appendSoon(JSON.stringify(record)),
    close: () => lines.close(),
  };
}

function parseLines<T>(file: string, text: string, schema: z.ZodType<T>): T[] {
  const records: T[] = [];
  text.split("\n").forEach((line, index) => {
    if (line.trim() === "") return;
    records.push(parseLine(`${file}:${index + 1}`, line, schema));
  });
  return records;
}

function parseLine<T>(where: string, line: string, schema: z.ZodType<T>): T {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new RootstepError("RUN_CORRUPT", { what: `a record of ${basename(where)} is not JSON`, where, cause });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new RootstepError("RUN_CORRUPT", {
    what: issue === undefined ? "a record has the wrong shape" : issue.message,
    where: `${where} ${issue?.path.join(".") ?? ""}`.trim(),
  });
}
