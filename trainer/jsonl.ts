import { existsSync } from "node:fs";
import { open, readFile, rename } from "node:fs/promises";
import { RootstepError } from "../src/errors.ts";

/** Appends one record as a line and waits until it is on disk. @throws RootstepError FILE_UNREADABLE */
export async function appendRecord(path: string, record: unknown): Promise<void> {
  try {
    const file = await open(path, "a");
    try {
      await file.appendFile(`${JSON.stringify(record)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (cause) {
    throw new RootstepError("FILE_UNREADABLE", { what: "a record could not be written", where: path, cause });
  }
}

/**
 * Cuts a JSONL file before the first record that does not satisfy `keep`, and drops a torn last line (a crash in
 * mid-write). Kept lines stay byte for byte. A missing file stays missing.
 *
 * @returns number of lines kept @throws RootstepError RUN_CORRUPT where a line before the last is no JSON
 */
export async function truncateRecords(path: string, keep: (record: unknown) => boolean): Promise<number> {
  if (!existsSync(path)) return 0;
  const text = await readFile(path, "utf8");
  const lines = text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .slice(0, -1);
  const kept: string[] = [];
  for (const [index, line] of lines.entries()) {
    const record = parseLine(line, `${path}:${index + 1}`);
    if (!keep(record)) break;
    kept.push(line);
  }
  const cut = kept.map((line) => `${line}\n`).join("");
  if (cut !== text) await replaceFile(path, cut);
  return kept.length;
}

function parseLine(line: string, where: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new RootstepError("RUN_CORRUPT", { what: "the line is not JSON", where, cause });
  }
}

/** Writes beside and renames, so that a crash leaves the old file or the new one. */
async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`;
  const file = await open(temporary, "w");
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}
