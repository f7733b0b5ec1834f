import { isDeepStrictEqual } from "node:util";
import { asRootstepError, type RootstepError } from "../../src/errors.ts";
import { readTracerTraj } from "../../src/formats/tracertraj/read.ts";
import { type LocatedFault, type Validation, validateFile } from "../../src/formats/validate.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { SPLITS, type Split } from "./dataset.ts";
import { type DatasetFolder, openDatasetFolder, readEvidence } from "./folder.ts";
import { readTracerTrajParquet } from "./parquet.ts";

interface Placed {
  readonly trajectory: Trajectory;
  readonly where: string;
  readonly split: Split;
}

/**
 * Everything that does not hold in a dataset folder: bad records, a record or task group in both splits, Parquet that
 * differs from the JSON Lines, a label without evidence or against it, records that are not what a dataset is for.
 *
 * @throws RootstepError FILE_MISSING, DATA_INVALID where the card does not say what lies where
 */
export async function validateDataset(path: string): Promise<Validation> {
  const folder = await openDatasetFolder(path);
  const faults: LocatedFault[] = [];
  const parts: Validation[] = [];
  const placed: Placed[] = [];
  const fault = (where: string, message: string, at = "", code: RootstepError["code"] = "DATA_INVALID"): void =>
    void faults.push({ where, path: at, message, code });

  for (const split of SPLITS) {
    const file = folder.files.jsonl[split];
    try {
      parts.push(await validateFile(file, "tracertraj"));
      for await (const read of readTracerTraj(file, { onBad: () => {} })) placed.push({ ...read, split });
    } catch (error) {
      const { code, what, where } = asRootstepError(error);
      fault(where ?? file, what, "", code);
    }
    await compareParquet(
      folder,
      split,
      placed.filter((one) => one.split === split),
      fault,
    );
  }
  checkSplits(placed, fault);
  for (const { trajectory, where } of placed) {
    if (trajectory.labels.length === 0) fault(where, "a record without a label", "labels");
    if (trajectory.outcome.success) fault(where, "a run that succeeded has no decisive step", "outcome.success");
  }
  await checkEvidence(folder, placed, fault);
  const sum = (of: (part: Validation) => number): number => parts.reduce((total, part) => total + of(part), 0);
  return {
    format: "tracertraj dataset",
    records: sum(({ records }) => records),
    badRecords: sum(({ badRecords }) => badRecords),
    faults: [...parts.flatMap((part) => part.faults), ...faults],
    inconsistencies: parts.flatMap((part) => part.inconsistencies),
    losses: parts.flatMap((part) => part.losses),
  };
}

type Report = (where: string, message: string, at?: string, code?: RootstepError["code"]) => void;

async function compareParquet(
  { files }: DatasetFolder,
  split: Split,
  placed: readonly Placed[],
  fault: Report,
): Promise<void> {
  const file = files.parquet[split];
  try {
    const rows = await readTracerTrajParquet(file);
    if (rows.length !== placed.length) fault(file, `${rows.length} rows, the JSON Lines have ${placed.length} records`);
    for (const [position, { trajectory, where }] of rows.entries()) {
      const other = placed[position];
      if (other === undefined || isDeepStrictEqual(comparable(trajectory), comparable(other.trajectory))) continue;
      fault(where, `not the record of ${other.where}`);
    }
  } catch (error) {
    const { code, what, where } = asRootstepError(error);
    fault(where ?? file, what, "", code);
  }
}

/** As Parquet can hold it: JSON without what is undefined, half surrogate pairs replaced. */
function comparable(trajectory: Trajectory): unknown {
  return JSON.parse(JSON.stringify(trajectory), (_, value: unknown) =>
    typeof value === "string" ? value.replace(/\p{Surrogate}/gu, "\uFFFD") : value,
  );
}

function checkSplits(placed: readonly Placed[], fault: Report): void {
  const byId = new Map<string, Placed>();
  const byGroup = new Map<string, Placed>();
  for (const one of placed) {
    const { id, task } = one.trajectory;
    const same = byId.get(id);
    if (same !== undefined && same.split !== one.split) {
      fault(one.where, `the id ${id} stands in ${same.where} as well`, "id", "DATA_DUPLICATE_ID");
    }
    const sibling = byGroup.get(task.groupId);
    if (sibling !== undefined && sibling.split !== one.split) {
      fault(one.where, `the task group ${task.groupId} is in both splits: ${sibling.where}`, "task.groupId");
    }
    byId.set(id, same ?? one);
    byGroup.set(task.groupId, sibling ?? one);
  }
}

async function checkEvidence({ evidence }: DatasetFolder, placed: readonly Placed[], fault: Report): Promise<void> {
  let lines: Awaited<ReturnType<typeof readEvidence>>;
  try {
    lines = await readEvidence(evidence);
  } catch (error) {
    const { code, what, where } = asRootstepError(error);
    fault(where ?? evidence, what, "", code);
    return;
  }
  const key = (source: string, id: string): string => JSON.stringify([source, id]);
  const known = new Map(lines.map((line) => [key(line.source, line.id), line]));
  for (const { trajectory, where } of placed) {
    for (const [position, label] of trajectory.labels.entries()) {
      if (label.evidenceRef === undefined) continue;
      const at = `labels[${position}]`;
      const line = known.get(key(label.source, label.evidenceRef));
      if (line === undefined) {
        fault(where, `no ${label.source} evidence for ${label.evidenceRef}`, `${at}.evidenceRef`);
        continue;
      }
      const decisive = line.points?.find(({ decision }) => decision === "decisive")?.step;
      const step = label.source === "injection" ? decisive : line.step;
      if (step !== label.step)
        fault(where, `the label names step ${label.step}, ${line.where} step ${step}`, `${at}.step`);
      if (label.verdict !== line.verdict) {
        fault(where, `the label says ${label.verdict}, ${line.where} ${line.verdict}`, `${at}.verdict`);
      }
    }
  }
}
