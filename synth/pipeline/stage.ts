import pLimit from "p-limit";
import type { z } from "zod";
import { isError, RootstepError } from "../../src/errors.ts";
import { throwIfInterrupted } from "../../src/runs/interrupt.ts";
import type { Progress } from "../../src/runs/progress.ts";
import type { RunFolder } from "../../src/runs/run-folder.ts";

/** Where a stage keeps its records and how it runs. */
export interface StageInput {
  readonly folder: RunFolder;
  readonly progress: Progress;
  readonly concurrency: number;
  readonly signal?: AbortSignal;
}

/** Does every unit that the journal lacks and returns all records in the order of the units, whatever finished first. */
export async function stage<U, R>(
  input: StageInput,
  name: string,
  { file, schema }: { readonly file: string; readonly schema: z.ZodType<R> },
  units: readonly U[],
  keyOfUnit: (unit: U) => string,
  keyOfRecord: (record: R) => string,
  work: (unit: U) => Promise<unknown>,
): Promise<R[]> {
  const journal = input.folder.journal(file, schema);
  const done = new Map(journal.existing.map((record) => [keyOfRecord(record), record]));
  const bar = input.progress.stage(name, units.length, done.size);
  const limiter = pLimit(input.concurrency);
  let stopped = false;
  const recordOf = async (unit: U): Promise<R> => {
    const known = done.get(keyOfUnit(unit));
    if (known !== undefined) return known;
    await new Promise(setImmediate); // lets signals and timers in between units that never wait
    throwIfInterrupted(input.signal);
    if (stopped) throw new RootstepError("INTERRUPTED", { what: "another unit of this stage failed" });
    // Through JSON and the schema, so that a record is the same whether it was just made or read back by a resumed run.
    const record = schema.parse(JSON.parse(JSON.stringify(await work(unit))));
    journal.append(record);
    bar.advance();
    return record;
  };
  const settled = await Promise.allSettled(
    units.map((unit) =>
      limiter(() =>
        recordOf(unit).catch((error: unknown) => {
          stopped = true;
          throw error;
        }),
      ),
    ),
  );
  journal.close();
  bar.finish();
  // The first failure by order of units that is not just the echo of another one.
  const failures = settled.filter((result) => result.status === "rejected").map(({ reason }) => reason as unknown);
  if (failures.length > 0) throw failures.find((failure) => !isError(failure, "INTERRUPTED")) ?? failures[0];
  return settled.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
}
