import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { RootstepError } from "../src/errors.ts";
import type { TinkerEngine } from "./engines/tinker/engine.ts";

const run = promisify(execFile);

/**
 * Brings the present weights, a whole model in Hugging Face's format, into a folder that appears whole or not at all. SkyRL packs
 * them without compression as MODEL/sampler_weights/NAME.tar.gz in its folder of checkpoints; without a way there they are downloaded.
 *
 * @param at `checkpoints`: that folder as seen from here @throws RootstepError SYNC_FAILED
 */
export async function exportModel(
  engine: Pick<TinkerEngine, "saveSamplerWeights" | "downloadSamplerWeights">,
  at: { readonly checkpoints: string | undefined; readonly folder: string },
): Promise<void> {
  const { folder } = at;
  const unpacking = `${folder}.unpacking`;
  await rm(unpacking, { recursive: true, force: true });
  await mkdir(unpacking, { recursive: true });
  const archive = await findArchive(engine, at.checkpoints, `${folder}.tar`);
  try {
    // GNU and BSD tar tell compression by themselves, and take neither absolute names nor .. out of an archive.
    await run("tar", ["-xf", archive, "-C", unpacking]);
  } catch (cause) {
    throw new RootstepError("SYNC_FAILED", { what: "the engine's weights cannot be unpacked", where: archive, cause });
  } finally {
    if (at.checkpoints === undefined) await rm(archive, { force: true });
  }
  await requireModel(unpacking, archive);
  await rm(folder, { recursive: true, force: true });
  await rename(unpacking, folder);
}

async function findArchive(
  engine: Pick<TinkerEngine, "saveSamplerWeights" | "downloadSamplerWeights">,
  checkpoints: string | undefined,
  download: string,
): Promise<string> {
  if (checkpoints === undefined) {
    await writeFile(download, await engine.downloadSamplerWeights());
    return download;
  }
  const { model, name } = await engine.saveSamplerWeights();
  const archive = join(checkpoints, model, "sampler_weights", `${name}.tar.gz`);
  if (existsSync(archive)) return archive;
  throw new RootstepError("SYNC_FAILED", {
    what: "the training server has saved its weights elsewhere",
    where: archive,
    hint: "Set servers.checkpointsFolder to the folder the server was given for its checkpoints, as this machine sees it.",
  });
}

/** @throws RootstepError SYNC_FAILED where vLLM could not load what was unpacked */
async function requireModel(folder: string, archive: string): Promise<void> {
  const names = await readdir(folder);
  if (names.includes("config.json") && names.some((name) => name.endsWith(".safetensors"))) return;
  throw new RootstepError("SYNC_FAILED", {
    what: `the engine saved no whole model (config.json and safetensors) but ${names.sort().join(", ") || "nothing"}`,
    where: archive,
    hint: "See that the training server trains all parameters: engine.profile says so, and the server must agree.",
  });
}

/** Removes the weights of all versions but one. */
export async function removeOtherVersions(folder: string, policyVersion: number): Promise<void> {
  for (const name of await readdir(folder)) {
    if (/^version-\d+$/u.test(name) && name !== `version-${policyVersion}`) {
      await rm(join(folder, name), { recursive: true, force: true });
    }
  }
}
