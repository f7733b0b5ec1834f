import { stat } from "node:fs/promises";
import { isError, RootstepError } from "../../errors.ts";
import { onFile } from "../files.ts";
import type { Confidence } from "../format.ts";
import { readJsonLines } from "../jsonl.ts";

/** How many lines, good or bad, are looked at before a file is given up. */
const LOOK_AT = 5;

/**
 * TracerTraj is JSONL whose records have `schemaVersion`, `steps` and `task`, whatever the version says.
 * @throws RootstepError FILE_MISSING, FILE_UNREADABLE
 */
export async function detectTracerTraj(source: string): Promise<Confidence> {
  if ((await onFile(source, () => stat(source))).isDirectory()) return 0;
  let seen = 0;
  const onBad = (error: RootstepError): void => {
    seen++;
    if (seen >= LOOK_AT) throw error;
  };
  try {
    for await (const { value } of readJsonLines(source, { onBad })) {
      if (hasItsFields(value)) return 1;
      seen++;
      if (seen >= LOOK_AT) return 0;
    }
  } catch (error) {
    if (!(error instanceof RootstepError) || isError(error, "FILE_UNREADABLE")) throw error;
  }
  return 0;
}

function hasItsFields(value: unknown): boolean {
  return typeof value === "object" && value !== null && "schemaVersion" in value && "steps" in value && "task" in value;
}
