import type { RootstepError } from "../errors.ts";
import type { Trajectory } from "../trajectory/schema.ts";

/** Something that a conversion could not keep. */
export interface Loss {
  /** Path of the field in the record it was lost from: `steps[].toolCalls`. */
  readonly field: string;
  /** How many values were lost. */
  readonly count: number;
  readonly why: string;
}

export interface ReadOptions {
  /** Told of each bad record, which is then skipped. Without it the first bad record ends the reading with its error. */
  readonly onBad?: ((error: RootstepError) => void) | undefined;
  /** Told, record by record, what the model cannot hold; `lossCollector` sums it up. */
  readonly onLoss?: ((loss: Loss) => void) | undefined;
  /** Longer records are bad. Default 64 MiB. */
  readonly maxRecordBytes?: number | undefined;
  /**
   * What the source counts its first step as, for a source whose format does not say it: labels are converted to 0-based
   * and the conversion is recorded. Only read by formats that are found with either base (Who&When and folders like it).
   */
  readonly indexBase?: 0 | 1 | undefined;
}

export interface WriteOptions {
  /** Told, record by record, what the format cannot hold. */
  readonly onLoss?: ((loss: Loss) => void) | undefined;
}

export interface LocatedTrajectory {
  readonly trajectory: Trajectory;
  /** `file:line`, or the file where a record is a file of its own. */
  readonly where: string;
}

/** 0: certainly not this format · 1: certainly this format. */
export type Confidence = number;

/** How trajectories lie in files. Implementations pass tests/formats/format.conformance.ts. */
export interface TrajectoryFormat {
  /** The name after --format. */
  readonly id: string;
  readonly title: string;
  /** `in`: read only · `both`: read(write(x)) = x for what the format can hold. */
  readonly direction: "in" | "both";
  /**
   * Looks at names and first records only. Bad content gives 0, not an error.
   * @throws RootstepError FILE_MISSING, FILE_UNREADABLE
   */
  detect(source: string): Promise<Confidence>;
  /**
   * Streams the trajectories of a file or folder; good ones before a bad one are always yielded first.
   * @throws RootstepError FILE_MISSING, FILE_UNREADABLE; and unless `onBad` takes them the DATA_… errors and LABEL_OUTSIDE
   */
  read(source: string, options?: ReadOptions): AsyncGenerator<LocatedTrajectory>;
  /**
   * Writes all of them to a file or folder, which appears whole or not at all.
   * @throws RootstepError DATA_DUPLICATE_ID, DATA_INVALID (a record the format cannot express), FILE_UNREADABLE
   */
  write?(
    trajectories: Iterable<Trajectory> | AsyncIterable<Trajectory>,
    target: string,
    options?: WriteOptions,
  ): Promise<void>;
}

/** Sums losses by field and reason: the loss report. */
export function lossCollector(): { readonly onLoss: (loss: Loss) => void; readonly losses: () => Loss[] } {
  const sums = new Map<string, Loss>();
  return {
    onLoss: (loss) => {
      const key = JSON.stringify([loss.field, loss.why]);
      sums.set(key, { ...loss, count: loss.count + (sums.get(key)?.count ?? 0) });
    },
    losses: () => [...sums.values()].sort((a, b) => b.count - a.count || (a.field < b.field ? -1 : 1)),
  };
}
