import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, isAbsolute, join, normalize } from "node:path";
import { parseTarGzip } from "nanotar";
import { RootstepError } from "../../src/errors.ts";

/** More than any adapter's settings and weights need. */
const LARGEST_FILE = 8 * 1024 ** 3;

/**
 * Unpacks a gzipped tar of weights into a folder that appears whole or not at all.
 * @throws RootstepError ENGINE_FAILED where it is none or a name in it leads outside
 */
export async function unpackWeights(archive: Uint8Array, folder: string): Promise<void> {
  const temporary = `${folder}.unpacking`;
  await rm(temporary, { recursive: true, force: true });
  for (const { name, data, type } of await read(archive, folder)) {
    if (type !== "file" || data === undefined) continue;
    const inside = normalize(name);
    if (isAbsolute(inside) || inside.startsWith("..") || data.byteLength > LARGEST_FILE) {
      throw new RootstepError("ENGINE_FAILED", {
        what: `the engine's archive holds a file named ${name}`,
        where: folder,
      });
    }
    const path = join(temporary, inside);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, data);
  }
  await rm(folder, { recursive: true, force: true });
  await rename(temporary, folder);
}

async function read(archive: Uint8Array, folder: string) {
  try {
    return await parseTarGzip(archive);
  } catch (cause) {
    const what = "the engine's weights are no gzipped tar archive";
    throw new RootstepError("ENGINE_FAILED", { what, where: folder, cause });
  }
}
