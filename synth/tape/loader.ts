import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { RootstepError } from "../../src/errors.ts";
import { type BodyReader, openBodies } from "./bodies.ts";
import {
  BODIES_FILE,
  type StoredCall,
  type StoredToolExchange,
  TAPE_FILE,
  TAPE_FOLDER_VERSION,
  type TapeEnd,
  type TapeHeader,
  type TapeRecord,
  tapeRecordSchema,
} from "./folder-schema.ts";
import { FIRST_SUM, openLine } from "./sealed-line.ts";

/** A tape as it lies on disk. */
export interface TapeFolder {
  readonly path: string;
  readonly header: TapeHeader;
  /** In file order, every attempt. */
  readonly calls: readonly StoredCall[];
  /** In file order. */
  readonly tools: readonly StoredToolExchange[];
  /** Undefined where the recording was interrupted. */
  readonly end: TapeEnd | undefined;
  /** What was left out because the file ends inside it. */
  readonly torn: readonly string[];
  readonly bodies: BodyReader;
}

/** One thing that is wrong with a tape. */
export interface TapeFault {
  /** file:line */
  readonly where: string;
  readonly what: string;
  readonly code: "TAPE_DAMAGED" | "TAPE_VERSION";
}

/**
 * Opens a recorded tape. A torn last line (the recorder was killed) is left out and told of in `torn`; any other fault is
 * an error.
 *
 * @throws RootstepError FILE_MISSING, TAPE_VERSION, TAPE_DAMAGED naming file:line
 */
export function loadTape(path: string): TapeFolder {
  return readTape(path, ({ code, what, where }) => {
    throw new RootstepError(code, { what, where });
  });
}

/**
 * Reads as much as can be read and tells of each fault.
 * @throws RootstepError FILE_MISSING; TAPE_DAMAGED where there is no header to go on from
 */
export function readTape(path: string, onFault: (fault: TapeFault) => void): TapeFolder {
  const file = join(path, TAPE_FILE);
  if (!existsSync(file)) {
    throw new RootstepError("FILE_MISSING", { what: `this is not a tape: it has no ${TAPE_FILE}`, where: path });
  }
  const bodies = openBodies(join(path, BODIES_FILE));
  const { records, torn } = readRecords(file, onFault);
  const header = records.find(({ record }) => record.type === "tape")?.record;
  if (header?.type !== "tape") {
    bodies.close();
    throw new RootstepError("TAPE_DAMAGED", { what: "the tape has no first line that says what it is", where: file });
  }
  const calls: StoredCall[] = [];
  const tools: StoredToolExchange[] = [];
  let end: TapeEnd | undefined;
  for (const { record, line } of records) {
    const missing = addressesIn(record).find((address) => !bodies.has(address));
    if (missing !== undefined && bodies.torn) {
      torn.push(`${file}:${line}: its body is in the part of ${BODIES_FILE} that is cut off`);
    } else if (missing !== undefined) {
      onFault({
        where: `${file}:${line}`,
        what: `the body ${missing.slice(0, 12)} is not there`,
        code: "TAPE_DAMAGED",
      });
    } else if (record.type === "call") calls.push(record);
    else if (record.type === "tool") tools.push(record);
    else if (record.type === "end") end = record;
  }
  if (bodies.torn) torn.push(`${join(path, BODIES_FILE)}:${bodies.lines + 1}: the file ends inside this line`);
  if (end !== undefined && torn.length === 0 && end.calls !== calls.length) {
    const what = `the last line counts ${end.calls} calls, the tape holds ${calls.length}`;
    onFault({ where: `${file}:${records.length}`, what, code: "TAPE_DAMAGED" });
  }
  if (end !== undefined && torn.length === 0 && (end.tools ?? 0) !== tools.length) {
    const what = `the last line counts ${end.tools ?? 0} exchanges with tools, the tape holds ${tools.length}`;
    onFault({ where: `${file}:${records.length}`, what, code: "TAPE_DAMAGED" });
  }
  return { path, header, calls, tools, end, torn, bodies };
}

interface ReadRecord {
  readonly record: TapeRecord;
  readonly line: number;
}

function readRecords(file: string, onFault: (fault: TapeFault) => void) {
  const bytes = readFileSync(file);
  const records: ReadRecord[] = [];
  const torn: string[] = [];
  let sum = FIRST_SUM;
  let [line, from] = [0, 0];
  for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, from)) {
    line++;
    const read = readRecord(bytes.toString("utf8", from, end), sum, `${file}:${line}`, onFault);
    from = end + 1;
    if (read === undefined) continue;
    sum = read.sum;
    if (read.record !== undefined) records.push({ record: read.record, line });
  }
  if (from < bytes.length) torn.push(`${file}:${line + 1}: the file ends inside this line`);
  return { records, torn };
}

const anyVersion = z.looseObject({ type: z.literal("tape"), version: z.number() });

function readRecord(
  text: string,
  previous: string,
  where: string,
  onFault: (fault: TapeFault) => void,
): { readonly sum: string; readonly record: TapeRecord | undefined } | undefined {
  const opened = openLine(previous, text);
  if (opened === undefined) {
    onFault({ where, what: "the line is not one of a tape", code: "TAPE_DAMAGED" });
    return undefined;
  }
  const { sum } = opened;
  if (!opened.intact) {
    onFault({ where, what: "this line, or one before it, was changed after it was recorded", code: "TAPE_DAMAGED" });
  }
  let value: unknown;
  try {
    value = JSON.parse(opened.text);
  } catch {
    onFault({ where, what: "the line is not JSON", code: "TAPE_DAMAGED" });
    return { sum, record: undefined };
  }
  const parsed = tapeRecordSchema.safeParse(value);
  if (parsed.success) return { sum, record: parsed.data };
  const header = anyVersion.safeParse(value);
  if (header.success && header.data.version !== TAPE_FOLDER_VERSION) {
    const what = `the tape has layout version ${header.data.version}, this rootstep reads version ${TAPE_FOLDER_VERSION}`;
    // Nothing after it can be trusted to mean what it means here.
    throw new RootstepError("TAPE_VERSION", { what, where });
  }
  const issue = parsed.error.issues[0];
  onFault({ where, what: `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "wrong shape"}`, code: "TAPE_DAMAGED" });
  return { sum, record: undefined };
}

function addressesIn(record: TapeRecord): readonly string[] {
  switch (record.type) {
    case "tape":
      return [];
    case "call":
    case "tool":
      return [record.request.body, record.response.body];
    case "end":
      return [record.stdout];
  }
}
