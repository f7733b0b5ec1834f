import type { z } from "zod";
import { RootstepError } from "../../src/errors.ts";
import type { RunFolder } from "../../src/runs/run-folder.ts";

/** A stage's journal as a projection of the ledger: its records in the order of the units, whatever finished first. */
export interface Projection<R> {
  /** Records the file held when it was opened, in its order. */
  readonly existing: readonly R[];
  /** Takes the result of the unit at that position; writes it once all before it are there. */
  set(position: number, result: string): void;
  /** Writes what units that died have kept back, and closes. */
  finish(): void;
  close(): void;
}

/**
 * @param length number of units
 * @throws RootstepError RUN_CORRUPT where the file has a damaged record, FILE_UNREADABLE
 */
export function openProjection<R>(
  folder: RunFolder,
  file: string,
  schema: z.ZodType<R>,
  length: number,
  positionOf: (record: R) => number | undefined,
): Projection<R> {
  const journal = folder.journal(file, schema);
  const results: (string | undefined)[] = Array.from({ length }, () => undefined);
  // A file that is in another order (of arrival, or with gaps since filled) is written anew at the end.
  const inOrder = journal.existing.every((record, index) => positionOf(record) === index);
  let next = inOrder ? journal.existing.length : 0;
  let written = journal.existing.length;
  let open = true;
  const close = (): void => {
    if (open) journal.close();
    open = false;
  };

  return {
    existing: journal.existing,
    set(position, result) {
      const there = inOrder ? journal.existing[position] : undefined;
      if (there !== undefined && JSON.stringify(there) !== result) {
        throw new RootstepError("RUN_CORRUPT", {
          what: `record ${position + 1} is not what the ledger holds`,
          where: `${folder.file(file)}:${position + 1}`,
        });
      }
      results[position] = result;
      if (!inOrder) return;
      for (let line = results[next]; line !== undefined; line = results[next]) {
        journal.append(schema.parse(JSON.parse(line)));
        next++;
        written++;
      }
    },
    finish() {
      close();
      const all = results.filter((result) => result !== undefined);
      const complete = inOrder && written === all.length;
      if (!complete) folder.write(file, all.map((line) => `${line}\n`).join(""));
    },
    close,
  };
}
