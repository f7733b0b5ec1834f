import type { RootstepError } from "../errors.ts";
import { type Inconsistency, inconsistencies } from "../trajectory/invariants.ts";
import { type Loss, lossCollector } from "./format.ts";
import { type Fault, RecordError } from "./record-error.ts";
import { detectFormat, formatById } from "./registry.ts";

/** A fault and the record it lies in. */
export interface LocatedFault extends Fault {
  /** `file:line`, or the file where a record is a file of its own. */
  readonly where: string;
  readonly code: RootstepError["code"];
}

export interface LocatedInconsistency extends Inconsistency {
  readonly where: string;
  readonly id: string;
}

export interface Validation {
  readonly format: string;
  /** Good records. */
  readonly records: number;
  /** Records that could not be read, with every fault in them. */
  readonly badRecords: number;
  readonly faults: readonly LocatedFault[];
  /** Facts worth knowing about good records: a label that is not the speaker, an empty step. */
  readonly inconsistencies: readonly LocatedInconsistency[];
  readonly losses: readonly Loss[];
}

/**
 * Reads a whole file or folder and lists what is wrong with it.
 * @param formatId default: the detected format
 * @throws RootstepError FILE_MISSING, FILE_UNREADABLE, UNKNOWN_NAME, DATA_UNKNOWN_FORMAT
 */
export async function validateFile(path: string, formatId?: string): Promise<Validation> {
  const format = formatId === undefined ? await detectFormat(path) : formatById(formatId);
  const { onLoss, losses } = lossCollector();
  const faults: LocatedFault[] = [];
  const found: LocatedInconsistency[] = [];
  let records = 0;
  let badRecords = 0;
  const onBad = (error: RootstepError): void => {
    badRecords++;
    if (error instanceof RecordError) {
      for (const fault of error.faults) {
        faults.push({ where: error.location, path: fault.path, message: fault.message, code: error.code });
      }
    } else faults.push({ where: error.where ?? path, path: "", message: error.what, code: error.code });
  };
  for await (const { trajectory, where } of format.read(path, { onBad, onLoss })) {
    records++;
    for (const problem of inconsistencies(trajectory)) found.push({ ...problem, where, id: trajectory.id });
  }
  return { format: format.id, records, badRecords, faults, inconsistencies: found, losses: losses() };
}
