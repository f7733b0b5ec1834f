import { mkdir, readdir, rmdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { RootstepError } from "../../errors.ts";
import type { Trajectory } from "../../trajectory/schema.ts";
import { fileError, onFile, replaceWhole } from "../files.ts";
import type { WriteOptions } from "../format.ts";
import { decodeRecord, encodeRecord } from "./record.ts";

const WHY = "Who&When has no field that would give it back";

/**
 * Writes a Who&When folder: `Algorithm-Generated/N.json` and `Hand-Crafted/N.json`. Trajectories that came from Who&When
 * keep their file names, others are numbered. Of several labels the first is written. What the records cannot hold is found
 * by reading each one back, and reported.
 *
 * @throws RootstepError USAGE (the target holds files), DATA_DUPLICATE_ID, DATA_INVALID (no label), LABEL_OUTSIDE
 */
export async function writeWhoAndWhen(
  trajectories: Iterable<Trajectory> | AsyncIterable<Trajectory>,
  target: string,
  options: WriteOptions = {},
): Promise<void> {
  await removeIfEmpty(target);
  await replaceWhole(target, async (temporary) => {
    await mkdir(temporary);
    const ids = new Set<string>();
    const taken = new Set<string>();
    for await (const trajectory of trajectories) {
      if (ids.has(trajectory.id)) {
        throw new RootstepError("DATA_DUPLICATE_ID", { what: `two trajectories have the id ${trajectory.id}` });
      }
      ids.add(trajectory.id);
      const { subset, record } = encodeRecord(trajectory);
      const stem = freeStem(trajectory.id, subset.slug, taken);
      taken.add(`${subset.slug}/${stem}`);
      const folder = join(temporary, subset.folder);
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, `${stem}.json`), `${JSON.stringify(record, null, 4)}\n`);
      const back = decodeRecord(record, { location: trajectory.id, stem, folder: subset.folder });
      for (const [field, count] of missing(trajectory, back)) options.onLoss?.({ field, count, why: WHY });
    }
  });
}

async function removeIfEmpty(folder: string): Promise<void> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return;
    throw fileError(error, folder);
  }
  if (names.length > 0) {
    throw new RootstepError("USAGE", {
      what: "the folder to write to holds files already",
      where: folder,
      hint: "Choose a new folder, or empty that one.",
    });
  }
  await onFile(folder, () => rmdir(folder));
}

/** The file name the id asks for, else the next free number. */
function freeStem(id: string, slug: string, taken: ReadonlySet<string>): string {
  const wanted = id.startsWith(`${slug}/`) ? id.slice(slug.length + 1) : "";
  const isFileName = /^[\w][\w.-]{0,99}$/.test(wanted) && basename(wanted) === wanted;
  if (isFileName && !taken.has(`${slug}/${wanted}`)) return wanted;
  for (let number = 1; ; number++) if (!taken.has(`${slug}/${number}`)) return String(number);
}

/** Fields of `before` that `after` lacks or has otherwise, with how often. Array positions are folded: `steps[].usage`. */
function missing(before: unknown, after: unknown, path = "", found = new Map<string, number>()): Map<string, number> {
  if (isDeepStrictEqual(before, after)) return found;
  if (Array.isArray(before) && Array.isArray(after)) {
    before.forEach((item, index) => {
      missing(item, after[index], `${path}[]`, found);
    });
  } else if (isObject(before) && isObject(after)) {
    for (const [key, value] of Object.entries(before)) {
      if (value !== undefined) missing(value, after[key], path === "" ? key : `${path}.${key}`, found);
    }
  } else found.set(path, (found.get(path) ?? 0) + 1);
  return found;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
