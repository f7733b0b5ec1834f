import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The package's own folder, from the sources as from `dist/`: the nearest one above with configs/ and data/. */
function findPackageRoot(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json")) && existsSync(join(folder, "data"))) return folder;
    if (folder === dirname(folder)) throw new Error("rootstep's package folder was not found above its own code");
  }
}

const packageRoot = findPackageRoot();

/** Absolute path of a file that ships with rootstep, given relative to the package root. */
export function shippedPath(...parts: readonly string[]): string {
  return join(packageRoot, ...parts);
}
