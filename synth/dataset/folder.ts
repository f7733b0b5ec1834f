import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { RootstepError } from "../../src/errors.ts";
import { onFile } from "../../src/formats/files.ts";
import { readJsonLines } from "../../src/formats/jsonl.ts";
import { parseRecord } from "../../src/formats/record-error.ts";
import { type ReadHeader, readCardHeader } from "./card-header.ts";
import { SPLITS, type Split } from "./dataset.ts";
import { EVIDENCE_FILE } from "./write.ts";

/** A dataset on disk: what its card says lies where. */
export interface DatasetFolder {
  readonly path: string;
  readonly card: string;
  readonly header: ReadHeader;
  readonly evidence: string;
  /** Whole paths, by form. */
  readonly files: Readonly<Record<"parquet" | "jsonl", Readonly<Record<Split, string>>>>;
}

/** True for a folder with a card and an evidence file, and for a run folder that has one. */
export function isDatasetFolder(path: string): boolean {
  return rootOf(path) !== undefined;
}

function rootOf(path: string): string | undefined {
  return [path, join(path, "dataset")].find(
    (root) => existsSync(join(root, "README.md")) && existsSync(join(root, EVIDENCE_FILE)),
  );
}

/**
 * Opens a dataset folder, or the one in a run folder.
 * @throws RootstepError FILE_MISSING, DATA_INVALID where the card does not say where the splits are
 */
export async function openDatasetFolder(given: string): Promise<DatasetFolder> {
  const path = rootOf(given);
  if (path === undefined) {
    const what = `no dataset here: it has a README.md and ${EVIDENCE_FILE}, as \`synth run\` writes them`;
    throw new RootstepError("FILE_MISSING", { what, where: given });
  }
  const card = join(path, "README.md");
  const { header } = readCardHeader(await onFile(card, () => readFile(card, "utf8")), card);
  const filesOf = (form: string, named: ReadHeader["tracertraj"]["jsonl"] | undefined): Record<Split, string> => {
    const fileOf = (split: Split): string => {
      const file = named?.find((one) => one.split === split)?.path;
      if (file !== undefined) return join(path, file);
      throw new RootstepError("DATA_INVALID", { what: `the card names no ${form} file for ${split}`, where: card });
    };
    const [train, test] = SPLITS.map(fileOf);
    return { train: train ?? "", test: test ?? "" };
  };
  const parquet = header.configs.find(({ config_name }) => config_name === "default")?.data_files;
  const files = { parquet: filesOf("Parquet", parquet), jsonl: filesOf("JSON Lines", header.tracertraj.jsonl) };
  return { path, card, header, files, evidence: join(path, EVIDENCE_FILE) };
}

const evidenceSchema = z.looseObject({
  id: z.string(),
  source: z.enum(["human", "counterfactual", "injection", "imported"]),
  verdict: z.string().optional(),
  step: z.number().int().optional(),
  agent: z.string().optional(),
  liveCalls: z.number().optional(),
  corrections: z.array(z.looseObject({ step: z.number(), editSize: z.number() })).optional(),
  points: z.array(z.looseObject({ step: z.number(), decision: z.string() })).optional(),
});
export type EvidenceLine = z.infer<typeof evidenceSchema> & { readonly where: string };

/** @throws RootstepError FILE_MISSING, DATA_… naming the line */
export async function readEvidence(file: string): Promise<EvidenceLine[]> {
  const lines: EvidenceLine[] = [];
  for await (const { line, value } of readJsonLines(file)) {
    const where = `${file}:${line}`;
    lines.push({ ...parseRecord(evidenceSchema, value, where), where });
  }
  return lines;
}
