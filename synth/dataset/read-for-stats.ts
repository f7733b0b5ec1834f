import { detectFormat, formatById } from "../../src/formats/registry.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { SPLITS } from "./dataset.ts";
import { isDatasetFolder, openDatasetFolder, readEvidence } from "./folder.ts";
import type { StatsInput } from "./stats.ts";

/**
 * Records of a file in any format, or of both splits of a dataset with the edit sizes of its evidence. Bad records are
 * counted, not fatal.
 *
 * @throws RootstepError FILE_MISSING, DATA_UNKNOWN_FORMAT; DATA_… for damaged evidence
 */
export async function readForStats(path: string): Promise<StatsInput> {
  if (!isDatasetFolder(path)) return { name: path, ...(await read(path)), editSizes: new Map() };
  const folder = await openDatasetFolder(path);
  const parts = await Promise.all(SPLITS.map((split) => read(folder.files.jsonl[split], "tracertraj")));
  const editSizes = new Map<string, number>();
  for (const { id, source, step, corrections = [] } of await readEvidence(folder.evidence)) {
    const made = corrections.find((correction) => correction.step === step);
    if (source === "counterfactual" && made !== undefined) editSizes.set(id, made.editSize);
  }
  return {
    name: path,
    trajectories: parts.flatMap(({ trajectories }) => trajectories),
    badRecords: parts.reduce((sum, { badRecords }) => sum + badRecords, 0),
    editSizes,
  };
}

async function read(path: string, formatId?: string): Promise<{ trajectories: Trajectory[]; badRecords: number }> {
  const format = formatId === undefined ? await detectFormat(path) : formatById(formatId);
  const trajectories: Trajectory[] = [];
  let badRecords = 0;
  const onBad = (): void => void badRecords++;
  for await (const { trajectory } of format.read(path, { onBad })) trajectories.push(trajectory);
  return { trajectories, badRecords };
}
