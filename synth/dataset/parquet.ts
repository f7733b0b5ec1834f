import { readFile } from "node:fs/promises";
import { parquetReadObjects } from "hyparquet";
import { parquetWriteBuffer } from "hyparquet-writer";
import { RootstepError } from "../../src/errors.ts";
import { onFile } from "../../src/formats/files.ts";
import type { LocatedTrajectory, WriteOptions } from "../../src/formats/format.ts";
import { decodeTracerTraj } from "../../src/formats/tracertraj/record.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { fromCell, schemaOf, toCell } from "./columns.ts";
import { TRAJECTORY_COLUMNS } from "./trajectory-columns.ts";

const ROW = { name: "row", kind: "struct", fields: TRAJECTORY_COLUMNS } as const;

/** Trajectories as one Parquet file, a row each. */
export function tracerTrajParquet(trajectories: readonly Trajectory[], { onLoss }: WriteOptions = {}): Uint8Array {
  const columnData = TRAJECTORY_COLUMNS.map((field) => ({
    name: field.name,
    data: trajectories.map((trajectory) =>
      toCell(field, Reflect.get(trajectory, field.name), () =>
        onLoss?.({
          field: field.name,
          count: 1,
          why: "half a surrogate pair has no UTF-8; U+FFFD stands in its place",
        }),
      ),
    ),
  }));
  return new Uint8Array(parquetWriteBuffer({ schema: schemaOf(TRAJECTORY_COLUMNS), columnData }));
}

/**
 * Reads what `tracerTrajParquet` wrote.
 * @throws RootstepError FILE_MISSING, FILE_UNREADABLE, DATA_INVALID naming the row, LABEL_OUTSIDE
 */
export async function readTracerTrajParquet(file: string): Promise<LocatedTrajectory[]> {
  const bytes = await onFile(file, () => readFile(file));
  let rows: Record<string, unknown>[];
  try {
    rows = await parquetReadObjects({ file: new Uint8Array(bytes).buffer });
  } catch (cause) {
    throw new RootstepError("DATA_INVALID", { what: "the file is not whole Parquet", where: file, cause });
  }
  return rows.map((row, position) => {
    const where = `${file} row ${position}`;
    return { trajectory: decodeTracerTraj(recordOf(row, where), where), where };
  });
}

function recordOf(row: unknown, where: string): unknown {
  try {
    return fromCell(ROW, row);
  } catch (cause) {
    throw new RootstepError("DATA_INVALID", { what: "a JSON column holds text that is not JSON", where, cause });
  }
}
