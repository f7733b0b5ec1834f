import { cpSync, existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { RootstepError } from "../../src/errors.ts";
import { isAlive } from "../../src/is-alive.ts";

/**
 * The folders a recorded program runs in: at the same path in each rerun, and empty at its start, so that what it reads
 * and the paths it prints are the same.
 */
export interface Sandbox {
  readonly work: string;
  readonly home: string;
  readonly temporary: string;
  /** Where the program may leave its answer. */
  readonly answerFile: string;
  /** Takes the folders away and lets others use the path. */
  release(): void;
}

export interface SandboxOptions {
  readonly run: string;
  /** The machine's folder for temporary files. */
  readonly below: string;
  /** A folder whose content is copied into the working directory first. */
  readonly files?: string | undefined;
}

/**
 * Makes the run's folders anew below `TMP/rootstep-UID/RUN`. Nothing outside that folder is ever deleted.
 * @throws RootstepError RUN_LOCKED where the same run is under way; FILE_MISSING for `files`; FILE_UNREADABLE
 */
export function openSandbox({ run, below, files }: SandboxOptions): Sandbox {
  const owner = userInfo();
  const base = join(below, `rootstep-${owner.uid}`);
  const root = join(base, run);
  if (files !== undefined && !existsSync(files)) {
    throw new RootstepError("FILE_MISSING", { what: "the folder to copy is not there", where: files });
  }
  try {
    mkdirSync(base, { recursive: true, mode: 0o700 });
    const found = lstatSync(base);
    if (!found.isDirectory() || found.uid !== owner.uid) {
      throw new RootstepError("FILE_UNREADABLE", { what: "the folder for runs belongs to somebody else", where: base });
    }
    const unlock = lock(`${root}.lock`, run);
    rmSync(root, { recursive: true, force: true });
    const [work, home, temporary] = [join(root, "work"), join(root, "home"), join(root, "tmp")];
    for (const folder of [work, home, temporary]) mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (files !== undefined) cpSync(files, work, { recursive: true });
    return {
      work,
      home,
      temporary,
      answerFile: join(root, "answer.json"),
      release() {
        rmSync(root, { recursive: true, force: true });
        unlock();
      },
    };
  } catch (cause) {
    if (cause instanceof RootstepError) throw cause;
    throw new RootstepError("FILE_UNREADABLE", { what: "the run's folders cannot be made", where: root, cause });
  }
}

function lock(file: string, run: string): () => void {
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      writeFileSync(file, String(process.pid), { flag: "wx" });
      return () => rmSync(file, { force: true });
    } catch (cause) {
      const holder = existsSync(file) ? Number(readFileSync(file, "utf8")) : Number.NaN;
      if (isAlive(holder)) {
        const what = `process ${holder} is running ${run} already, in the same folders`;
        throw new RootstepError("RUN_LOCKED", {
          what,
          where: file,
          hint: "Wait for it, or choose another --run.",
          cause,
        });
      }
      rmSync(file, { force: true }); // its holder was killed
    }
  }
  throw new RootstepError("RUN_LOCKED", { what: "the lock cannot be taken", where: file });
}
