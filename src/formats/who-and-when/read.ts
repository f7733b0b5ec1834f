import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { isError, RootstepError } from "../../errors.ts";
import { onFile } from "../files.ts";
import type { LocatedTrajectory, ReadOptions } from "../format.ts";
import { MAX_RECORD_BYTES, parseJsonBytes, startsAsUtf16, tooLong, utf16, withoutBom } from "../json-bytes.ts";
import { decodeRecord, type RecordOrigin } from "./record.ts";
import { WHO_AND_WHEN_SUBSETS } from "./subsets.ts";

/**
 * Trajectories of Who&When: a folder with the subset folders, one folder of records, or one record file.
 * Algorithm-Generated comes before Hand-Crafted, each in the numeric order of its file names.
 *
 * @throws RootstepError FILE_MISSING; and unless `onBad` takes them DATA_NOT_JSON, DATA_TRUNCATED, DATA_INVALID,
 * LABEL_OUTSIDE, FILE_UNREADABLE, each naming the file and, where there is one, the JSON path
 */
export async function* readWhoAndWhen(source: string, options: ReadOptions = {}): AsyncGenerator<LocatedTrajectory> {
  for (const file of await whoAndWhenFiles(source)) {
    let trajectory: LocatedTrajectory["trajectory"];
    try {
      const value = await readRecordFile(file, options.maxRecordBytes);
      trajectory = decodeRecord(value, { ...originOf(file), indexBase: options.indexBase }, options.onLoss);
    } catch (error) {
      if (options.onBad === undefined || !(error instanceof RootstepError)) throw error;
      options.onBad(error);
      continue;
    }
    yield { trajectory, where: file };
  }
}

/** The record files of a source, in reading order. @throws RootstepError FILE_MISSING */
export async function whoAndWhenFiles(source: string): Promise<string[]> {
  const found = await onFile(source, () => stat(source));
  if (!found.isDirectory()) return [source];
  const names = await onFile(source, () => readdir(source));
  const folders = WHO_AND_WHEN_SUBSETS.map((subset) => subset.folder).filter((folder) => names.includes(folder));
  if (folders.length === 0) return recordNames(names).map((name) => join(source, name));
  const perFolder = await Promise.all(
    folders.map(async (folder) => {
      const inside = await onFile(join(source, folder), () => readdir(join(source, folder)));
      return recordNames(inside).map((name) => join(source, folder, name));
    }),
  );
  return perFolder.flat();
}

function recordNames(names: readonly string[]): string[] {
  return names.filter((name) => name.endsWith(".json")).sort(byNumber);
}

/** 2.json before 10.json; names that are no numbers come last, by code unit. */
function byNumber(a: string, b: string): number {
  const [x, y] = [a, b].map((name) =>
    /^\d+\.json$/.test(name) ? Number.parseInt(name, 10) : Number.POSITIVE_INFINITY,
  );
  if (x !== undefined && y !== undefined && x !== y) return x - y;
  return a < b ? -1 : 1;
}

/** What a file's path says about its record. */
export function originOf(file: string): RecordOrigin {
  return { location: file, stem: basename(file, ".json"), folder: basename(dirname(resolve(file))) };
}

/** The JSON of one record file. @throws RootstepError FILE_MISSING, FILE_UNREADABLE, DATA_… */
export async function readRecordFile(file: string, maxBytes = MAX_RECORD_BYTES): Promise<unknown> {
  const { size } = await onFile(file, () => stat(file));
  if (size > maxBytes) throw tooLong(file, maxBytes);
  const bytes = await onFile(file, () => readFile(file));
  if (startsAsUtf16(bytes)) throw utf16(file);
  return parseJsonBytes(withoutBom(bytes), file, "if-unclosed");
}

/** True if the file can be read as JSON and the JSON satisfies the test. */
export async function recordFileLooksLike(file: string, test: (value: unknown) => boolean): Promise<boolean> {
  try {
    return test(await readRecordFile(file));
  } catch (error) {
    if (isError(error, "FILE_MISSING") || isError(error, "FILE_UNREADABLE")) throw error;
    if (error instanceof RootstepError) return false;
    throw error;
  }
}
