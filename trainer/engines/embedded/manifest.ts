import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { sha256 } from "../../../src/checksum.ts";
import { RootstepError } from "../../../src/errors.ts";

const fileSchema = z.strictObject({
  file: z.string(),
  bytes: z.number().int().positive(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/u),
});

const modelSchema = z.strictObject({
  vocabulary: z.number().int().positive(),
  width: z.number().int().positive(),
  heads: z.number().int().positive(),
  layers: z.number().int().positive(),
  hidden: z.number().int().positive(),
  maxPrompt: z.number().int().positive(),
  maxCompletion: z.number().int().positive(),
  groupSize: z.number().int().positive(),
  /** Parameters in the order in which they lie in the flat vector. */
  parameters: z.array(z.strictObject({ name: z.string(), shape: z.array(z.number().int().positive()) })),
});
/** Sizes of the embedded model: prompts ≤ maxPrompt tokens, completions ≤ maxCompletion, groupSize completions per prompt. */
export type ModelShape = z.infer<typeof modelSchema>;

export const GRAPHS = ["train", "train1", "prefill", "decode", "decode1"] as const;
export type GraphName = (typeof GRAPHS)[number];

export const manifestSchema = z.strictObject({
  formatVersion: z.literal(1),
  model: modelSchema,
  graphs: z.strictObject({
    train: fileSchema,
    train1: fileSchema,
    prefill: fileSchema,
    decode: fileSchema,
    decode1: fileSchema,
  } satisfies Record<GraphName, typeof fileSchema>),
  /** The warm start, with how it was made and what it was measured to do. Absent only while it is being made. */
  weights: fileSchema
    .extend({ recipe: z.record(z.string(), z.unknown()), figures: z.record(z.string(), z.unknown()) })
    .optional(),
});
/** What data/embedded/manifest.json holds. */
export type EmbeddedManifest = z.infer<typeof manifestSchema>;

/** Number of parameters of the flat vector. */
export function parameterCount(model: ModelShape): number {
  return model.parameters.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
}

/** @throws RootstepError FILE_MISSING, DATA_INVALID */
export async function readManifest(folder: string): Promise<EmbeddedManifest> {
  const path = join(folder, "manifest.json");
  const text = (await readShipped(path)).toString("utf8");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new RootstepError("DATA_CHECKSUM", { what: "the manifest is not JSON", where: path, cause });
  }
  const parsed = manifestSchema.safeParse(value);
  if (!parsed.success) {
    throw new RootstepError("DATA_INVALID", { what: z.prettifyError(parsed.error), where: path, cause: parsed.error });
  }
  return parsed.data;
}

/** A shipped file whose bytes are what the manifest says. @throws RootstepError FILE_MISSING, DATA_CHECKSUM */
export async function readVerified(folder: string, entry: z.infer<typeof fileSchema>): Promise<Uint8Array> {
  const path = join(folder, entry.file);
  const bytes = await readShipped(path);
  const found = sha256(bytes);
  if (found !== entry.sha256) {
    throw new RootstepError("DATA_CHECKSUM", {
      what: `sha256 is ${found.slice(0, 12)}…, the manifest says ${entry.sha256.slice(0, 12)}…`,
      where: path,
    });
  }
  return bytes;
}

async function readShipped(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (cause) {
    throw new RootstepError("FILE_MISSING", {
      what: "a file of the embedded engine could not be read",
      where: path,
      cause,
    });
  }
}
