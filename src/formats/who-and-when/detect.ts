import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { onFile } from "../files.ts";
import type { Confidence } from "../format.ts";
import { recordFileLooksLike, whoAndWhenFiles } from "./read.ts";

/** How many records are looked at before a folder is given up. */
const LOOK_AT = 5;

/**
 * Who&When is a JSON file with `history` and `mistake_step`, or a folder of such files.
 * @throws RootstepError FILE_MISSING, FILE_UNREADABLE
 */
export async function detectWhoAndWhen(source: string): Promise<Confidence> {
  const found = await onFile(source, () => stat(source));
  if (!found.isDirectory() && !basename(source).endsWith(".json")) return 0;
  for (const file of (await whoAndWhenFiles(source)).slice(0, LOOK_AT)) {
    if (await recordFileLooksLike(file, hasItsFields)) return 1;
  }
  return 0;
}

function hasItsFields(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    "history" in value &&
    Array.isArray(value.history) &&
    ("mistake_step" in value || "mistake_agent" in value)
  );
}
