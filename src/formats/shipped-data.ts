import { readdir, readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { z } from "zod";
import { sha256 } from "../checksum.ts";
import { RootstepError } from "../errors.ts";
import { shippedPath } from "../package-root.ts";
import { onFile } from "./files.ts";
import { parseJsonBytes } from "./json-bytes.ts";
import { parseRecord } from "./record-error.ts";

/** Data sets that ship with rootstep, each a folder in data/ with a licence and a checksum manifest. */
export type ShippedSet = "who_and_when" | "gsm8k" | "hotpotqa" | "math" | "mbppplus";

const manifestSchema = z.strictObject({
  title: z.string(),
  /** Where the files were taken from: repository at a commit. */
  source: z.string(),
  licence: z.string(),
  /** SHA-256 over the lines `sha256  path`, of the whole set (`all`) and of its parts (the subsets of Who&When). */
  combined: z.record(z.string(), z.string()),
  files: z.record(z.string(), z.strictObject({ sha256: z.string().length(64), bytes: z.number().int().nonnegative() })),
});
/** What scripts/data/checksums.mjs wrote about a set. */
export type ShippedManifest = z.infer<typeof manifestSchema>;

/** @throws RootstepError FILE_MISSING, DATA_… */
export async function readShippedManifest(folder: string): Promise<ShippedManifest> {
  const file = join(folder, "manifest.json");
  return parseRecord(manifestSchema, parseJsonBytes(await onFile(file, () => readFile(file)), file), file);
}

/**
 * Compares every file of a shipped folder with its manifest: nothing changed, missing or added.
 * @param folder default for a set: where rootstep ships it
 * @returns the manifest, whose `combined` checksums name the data in run manifests
 * @throws RootstepError DATA_CHECKSUM naming the first file that differs
 */
export async function verifyShipped(folder: ShippedSet | { readonly path: string }): Promise<ShippedManifest> {
  const path = typeof folder === "string" ? shippedPath("data", folder) : folder.path;
  const manifest = await readShippedManifest(path);
  for (const [name, { sha256 }] of Object.entries(manifest.files)) await verifyFile(path, name, sha256);
  const entries = await onFile(path, () => readdir(path, { recursive: true, withFileTypes: true }));
  for (const entry of entries) {
    const name = relative(path, join(entry.parentPath, entry.name)).split(sep).join("/");
    if (!entry.isFile() || entry.name.startsWith(".") || name === "manifest.json" || name in manifest.files) continue;
    throw new RootstepError("DATA_CHECKSUM", {
      what: "a file lies in a shipped data set that does not belong to it",
      where: join(path, name),
      hint: "Move that file elsewhere.",
    });
  }
  return manifest;
}

/**
 * Path of one shipped file, after its checksum was found right: `shippedFile("gsm8k", "test.jsonl")`.
 * @throws RootstepError DATA_CHECKSUM, UNKNOWN_NAME (the set has no such file)
 */
export async function shippedFile(set: ShippedSet, name: string): Promise<string> {
  const folder = shippedPath("data", set);
  const { files } = await readShippedManifest(folder);
  const known = files[name];
  if (known === undefined) {
    throw new RootstepError("UNKNOWN_NAME", { what: `${set} has no file ${name}`, where: folder });
  }
  await verifyFile(folder, name, known.sha256);
  return join(folder, name);
}

async function verifyFile(folder: string, name: string, expected: string): Promise<void> {
  const file = join(folder, name);
  let content: Buffer;
  try {
    content = await readFile(file);
  } catch (error) {
    throw new RootstepError("DATA_CHECKSUM", { what: "a shipped file cannot be read", where: file, cause: error });
  }
  if (sha256(content) !== expected) {
    throw new RootstepError("DATA_CHECKSUM", { what: "the file differs from its checksum", where: file });
  }
}
