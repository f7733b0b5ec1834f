import { writeTracerTraj } from "../../src/formats/tracertraj/write.ts";
import type { RunFolder } from "../../src/runs/run-folder.ts";
import type { PipelineInput, PipelineRecords } from "../pipeline/pipeline.ts";
import { datasetCard } from "./card.ts";
import { RUN_FILES } from "./card-header.ts";
import { type Dataset, SPLITS } from "./dataset.ts";
import { tracerTrajParquet } from "./parquet.ts";
import { UNLABELLED_FILE } from "./unlabelled-file.ts";

/** The name of the evidence side file. */
export const EVIDENCE_FILE = "evidence.jsonl";

/**
 * Writes `dataset/` of a run folder (both splits as JSON Lines and Parquet, the evidence, the card) and the failed runs that
 * got no label.
 */
export async function writeDataset(
  folder: RunFolder,
  input: PipelineInput,
  records: PipelineRecords,
  dataset: Dataset,
): Promise<void> {
  for (const split of SPLITS) {
    await writeTracerTraj(dataset.splits[split], folder.file("dataset", RUN_FILES.jsonl[split]));
    folder.write(`dataset/${RUN_FILES.parquet[split]}`, tracerTrajParquet(dataset.splits[split]));
  }
  const unlabelled = dataset.unlabelled.map(({ trajectory }) => trajectory);
  await writeTracerTraj(unlabelled, folder.file(UNLABELLED_FILE));
  folder.write(`dataset/${EVIDENCE_FILE}`, dataset.evidence.map((line) => `${JSON.stringify(line)}\n`).join(""));
  folder.write("dataset/README.md", datasetCard(input, records, dataset));
}
