import { readdir, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { RootstepError } from "../../../src/errors.ts";
import { onFile } from "../../../src/formats/files.ts";
import { readJsonLines } from "../../../src/formats/jsonl.ts";

export interface FoundRecord {
  /** file:line, or file and row. */
  readonly where: string;
  readonly value: unknown;
}

/**
 * The records of a user's copy of a data set: a JSONL file (also gzipped), a Parquet file, or a folder with such files, read
 * in the order of their names.
 *
 * @param about name of the data set and where to get it, for the error
 * @throws RootstepError DATA_NOT_SHIPPED without a path; FILE_MISSING; DATA_…
 */
export async function* ownRecords(
  path: string | undefined,
  about: { readonly name: string; readonly getItFrom: string; readonly files?: RegExp },
): AsyncGenerator<FoundRecord> {
  if (path === undefined) {
    throw new RootstepError("DATA_NOT_SHIPPED", {
      what: `${about.name} does not ship with rootstep: get it from ${about.getItFrom}`,
      where: "tasks.path",
    });
  }
  const files = await filesAt(path, about.files ?? /./u);
  if (files.length === 0) {
    throw new RootstepError("FILE_MISSING", {
      what: `the folder holds no .jsonl or .parquet file of ${about.name}`,
      where: path,
      hint: `Get it from ${about.getItFrom}.`,
    });
  }
  for (const file of files) yield* extname(file) === ".parquet" ? parquetRows(file) : jsonLines(file);
}

async function filesAt(path: string, wanted: RegExp): Promise<string[]> {
  if (!(await onFile(path, () => stat(path))).isDirectory()) return [path];
  const names = await onFile(path, () => readdir(path, { recursive: true }));
  return names
    .filter((name) => /\.(?:jsonl|jsonl\.gz|parquet)$/u.test(name) && wanted.test(name))
    .sort()
    .map((name) => join(path, name));
}

async function* jsonLines(file: string): AsyncGenerator<FoundRecord> {
  for await (const { line, value } of readJsonLines(file)) yield { where: `${file}:${line}`, value };
}

async function* parquetRows(file: string): AsyncGenerator<FoundRecord> {
  let rows: readonly unknown[];
  try {
    rows = await parquetReadObjects({ file: await asyncBufferFromFile(file) });
  } catch (cause) {
    throw new RootstepError("DATA_INVALID", {
      what: "the file is no Parquet that can be read (Snappy or uncompressed)",
      where: file,
      hint: "Copy it again, or convert it to JSONL.",
      cause,
    });
  }
  for (const [row, value] of rows.entries()) yield { where: `${file}, row ${row}`, value };
}
