import { randomUUID } from "node:crypto";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { RootstepError } from "../errors.ts";

/** An error of the file system as one from the catalogue; anything else is handed back as it is. */
export function fileError(error: unknown, file: string): unknown {
  if (!(error instanceof Error) || !("code" in error) || !("syscall" in error)) return error;
  if (error.code === "ENOENT" || error.code === "ENOTDIR") {
    return new RootstepError("FILE_MISSING", { what: "no such file or folder", where: file, cause: error });
  }
  if (error.code === "EISDIR") {
    return new RootstepError("FILE_MISSING", { what: "a folder, where a file is expected", where: file, cause: error });
  }
  return new RootstepError("FILE_UNREADABLE", {
    what: `the file system says ${error.code}`,
    where: file,
    cause: error,
  });
}

/** Runs a file operation; its failures leave as catalogue errors that name the file. */
export async function onFile<T>(file: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    throw fileError(error, file);
  }
}

/**
 * Makes a file or folder appear whole or not at all: `make` fills a temporary path beside it, which is then renamed.
 * A failure removes the temporary path and leaves what was there before.
 */
export async function replaceWhole(target: string, make: (temporary: string) => Promise<void>): Promise<void> {
  await onFile(target, async () => {
    await mkdir(dirname(target), { recursive: true });
    const temporary = `${target}.${randomUUID()}.part`;
    try {
      await make(temporary);
      await rename(temporary, target);
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
  });
}
