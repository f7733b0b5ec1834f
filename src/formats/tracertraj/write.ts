import { RootstepError } from "../../errors.ts";
import type { Trajectory } from "../../trajectory/schema.ts";
import { writeJsonLines } from "../jsonl.ts";
import { assertUsable } from "../record-error.ts";
import { encodeTracerTraj } from "./record.ts";

/**
 * Writes a TracerTraj file, gzipped if the name ends in `.gz`. It appears whole or not at all.
 * @throws RootstepError DATA_DUPLICATE_ID, DATA_INVALID, LABEL_OUTSIDE (a trajectory the reader would refuse), FILE_UNREADABLE
 */
export async function writeTracerTraj(
  trajectories: Iterable<Trajectory> | AsyncIterable<Trajectory>,
  target: string,
): Promise<void> {
  await writeJsonLines(target, records(trajectories));
}

async function* records(trajectories: Iterable<Trajectory> | AsyncIterable<Trajectory>): AsyncGenerator<unknown> {
  const ids = new Set<string>();
  for await (const trajectory of trajectories) {
    if (ids.has(trajectory.id)) {
      throw new RootstepError("DATA_DUPLICATE_ID", { what: `two trajectories have the id ${trajectory.id}` });
    }
    ids.add(trajectory.id);
    assertUsable(trajectory, trajectory.id);
    yield encodeTracerTraj(trajectory);
  }
}
