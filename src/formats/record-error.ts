import type { z } from "zod";
import { type ErrorCode, RootstepError } from "../errors.ts";
import { inconsistencies, isFatal } from "../trajectory/invariants.ts";
import type { Trajectory } from "../trajectory/schema.ts";

/** One thing wrong inside a record. */
export interface Fault {
  /** JSON path inside the record (`steps[3].agent`); empty where the record as a whole is meant. */
  readonly path: string;
  readonly message: string;
}

/** A catalogue error about one record of a file: which file and line, and every fault found in the record. */
export class RecordError extends RootstepError {
  /** `file:line`, or the file where a record is a file of its own. */
  readonly location: string;
  readonly faults: readonly Fault[];

  constructor(code: ErrorCode, location: string, faults: readonly [Fault, ...Fault[]], hint?: string) {
    const [first] = faults;
    const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : "";
    super(code, {
      what: `${first.message}${more}`,
      where: first.path === "" ? location : `${location} ${first.path}`,
      hint,
    });
    this.location = location;
    this.faults = faults;
  }
}

/** A JSON path as people write it: `steps[3].agent`, `extra["odd key"]`. */
export function jsonPath(parts: readonly PropertyKey[]): string {
  let path = "";
  for (const part of parts) {
    if (typeof part === "number") path += `[${part}]`;
    else if (/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(String(part))) path += path === "" ? String(part) : `.${String(part)}`;
    else path += `[${JSON.stringify(String(part))}]`;
  }
  return path;
}

/**
 * The value as the schema sees it.
 * @throws RecordError DATA_INVALID with every fault zod found
 */
export function parseRecord<T>(schema: z.ZodType<T>, value: unknown, location: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [first, ...rest] = parsed.error.issues.map(
    (issue): Fault => ({ path: jsonPath(issue.path), message: issue.message }),
  );
  throw new RecordError("DATA_INVALID", location, [first ?? { path: "", message: "not the expected shape" }, ...rest]);
}

/**
 * Checks the invariants without which a record is unusable: steps there, indexes contiguous, labels inside the log.
 * @throws RecordError LABEL_OUTSIDE or DATA_INVALID
 */
export function assertUsable(trajectory: Trajectory, location: string): void {
  const [first, ...rest] = inconsistencies(trajectory).filter(isFatal);
  if (first === undefined) return;
  const code = first.kind === "label-outside" ? "LABEL_OUTSIDE" : "DATA_INVALID";
  throw new RecordError(code, location, [first, ...rest]);
}
