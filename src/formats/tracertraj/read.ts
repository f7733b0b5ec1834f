import { RootstepError } from "../../errors.ts";
import type { LocatedTrajectory, ReadOptions } from "../format.ts";
import { readJsonLines } from "../jsonl.ts";
import { RecordError } from "../record-error.ts";
import { decodeTracerTraj } from "./record.ts";

/**
 * Trajectories of a TracerTraj file (.jsonl, .jsonl.gz), streamed. Nothing is lost: fields of other tools go to `extra`.
 *
 * @throws RootstepError FILE_MISSING, FILE_UNREADABLE; and unless `onBad` takes them the errors of `readJsonLines`,
 * DATA_INVALID, LABEL_OUTSIDE and DATA_DUPLICATE_ID, each naming `file:line` and the JSON path
 */
export async function* readTracerTraj(source: string, options: ReadOptions = {}): AsyncGenerator<LocatedTrajectory> {
  const lineOfId = new Map<string, number>();
  const lines = readJsonLines(source, { onBad: options.onBad, maxLineBytes: options.maxRecordBytes });
  for await (const { line, value } of lines) {
    const where = `${source}:${line}`;
    let trajectory: LocatedTrajectory["trajectory"];
    try {
      trajectory = decodeTracerTraj(value, where);
      const earlier = lineOfId.get(trajectory.id);
      if (earlier !== undefined) {
        const message = `the id ${JSON.stringify(trajectory.id)} stands in line ${earlier} already`;
        throw new RecordError("DATA_DUPLICATE_ID", where, [{ path: "id", message }]);
      }
    } catch (error) {
      if (options.onBad === undefined || !(error instanceof RootstepError)) throw error;
      options.onBad(error);
      continue;
    }
    lineOfId.set(trajectory.id, line);
    yield { trajectory, where };
  }
}
