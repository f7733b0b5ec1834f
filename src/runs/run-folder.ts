import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { RootstepError } from "../errors.ts";
import { isAlive } from "../is-alive.ts";
import { isRecord } from "../is-record.ts";
import { type Journal, openJournal } from "./journal.ts";

/** Layout version of run folders. A folder of another version is refused, never guessed at. */
export const RUN_FOLDER_VERSION = 1;

const manifestSchema = z.strictObject({
  runFolderVersion: z.number().int(),
  /** The verb that made the folder: synth, train, eval. */
  kind: z.string(),
  rootstep: z.string(),
  startedAt: z.string(),
  /** Everything that decides the result; no secrets, no paths of this machine that do not matter. */
  settings: z.record(z.string(), z.unknown()),
  /** sha256 of data and weights that went in. */
  inputs: z.record(z.string(), z.string()),
});
export type RunManifest = z.infer<typeof manifestSchema>;

export interface RunFolder {
  readonly path: string;
  readonly manifest: RunManifest;
  /** True if the folder was there before: this run goes on where that one stopped. */
  readonly resumed: boolean;
  file(...name: readonly string[]): string;
  journal<T>(name: string, schema: z.ZodType<T>): Journal<T>;
  /** Writes a whole file by way of a temporary name: it is either the old or the new one. */
  write(name: string, content: string | Uint8Array): void;
  /** Gives the folder free for another process. */
  release(): void;
}

export interface OpenRunOptions {
  readonly path: string;
  readonly kind: string;
  readonly version: string;
  readonly settings: Record<string, unknown>;
  readonly inputs?: Record<string, string>;
  readonly now: () => Date;
}

/**
 * Creates a run folder, or opens it again to go on.
 *
 * @throws RootstepError RUN_VERSION (another layout), RUN_MISMATCH (other settings or inputs: the differing keys are
 * named), RUN_CORRUPT (unreadable manifest), RUN_LOCKED (a living process holds it)
 */
export function openRunFolder(options: OpenRunOptions): RunFolder {
  const { path } = options;
  const manifestFile = join(path, "manifest.json");
  const resumed = existsSync(manifestFile);
  // A canonical form: what JSON cannot hold (undefined) must not count as a difference.
  const settings: Record<string, unknown> = JSON.parse(JSON.stringify(options.settings));
  const inputs = options.inputs ?? {};
  makeFolder(path);
  const manifest = resumed
    ? readManifest(manifestFile)
    : {
        runFolderVersion: RUN_FOLDER_VERSION,
        kind: options.kind,
        rootstep: options.version,
        startedAt: options.now().toISOString(),
        settings,
        inputs,
      };
  if (resumed) refuseOthers(manifest, options.kind, settings, inputs, manifestFile);
  const release = lockFolder(path);
  const write = (name: string, content: string | Uint8Array): void => writeAtomically(join(path, name), content);
  if (!resumed) write("manifest.json", `${JSON.stringify(manifest, null, 2)}\n`);
  return {
    path,
    manifest,
    resumed,
    file: (...name) => join(path, ...name),
    journal: (name, schema) => {
      mkdirSync(dirname(join(path, name)), { recursive: true });
      return openJournal(join(path, name), schema);
    },
    write,
    release,
  };
}

/** Reads the manifest of a finished or stopped run. @throws RootstepError FILE_MISSING, RUN_CORRUPT, RUN_VERSION */
export function readRunManifest(path: string): RunManifest {
  const file = join(path, "manifest.json");
  if (!existsSync(file)) {
    throw new RootstepError("FILE_MISSING", { what: "this is not a run folder: it has no manifest.json", where: path });
  }
  return readManifest(file);
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true });
  } catch (cause) {
    throw new RootstepError("FILE_UNREADABLE", { what: "the run folder cannot be made", where: path, cause });
  }
}

function readManifest(file: string): RunManifest {
  let raw: unknown;
  try {
    raw = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new RootstepError("RUN_CORRUPT", { what: "the manifest is not JSON", where: file, cause });
  }
  const version = z.object({ runFolderVersion: z.number() }).safeParse(raw);
  if (version.success && version.data.runFolderVersion !== RUN_FOLDER_VERSION) {
    throw new RootstepError("RUN_VERSION", {
      what: `the folder has layout version ${version.data.runFolderVersion}, this rootstep writes version ${RUN_FOLDER_VERSION}`,
      where: file,
    });
  }
  const parsed = manifestSchema.safeParse(raw);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new RootstepError("RUN_CORRUPT", {
    what: `the manifest has the wrong shape: ${issue?.message ?? "unknown"}`,
    where: `${file} ${issue?.path.join(".") ?? ""}`.trim(),
  });
}

function refuseOthers(
  manifest: RunManifest,
  kind: string,
  settings: Record<string, unknown>,
  inputs: Record<string, string>,
  where: string,
): void {
  if (manifest.kind !== kind) {
    throw new RootstepError("RUN_MISMATCH", {
      what: `the folder holds a ${manifest.kind} run, not a ${kind} run`,
      where,
    });
  }
  const differing = [
    ...differingPaths(manifest.settings, settings, ""),
    ...differingPaths(manifest.inputs, inputs, "inputs."),
  ];
  if (differing.length === 0) return;
  throw new RootstepError("RUN_MISMATCH", { what: `other settings than the folder's: ${differing.join("; ")}`, where });
}

function differingPaths(before: unknown, now: unknown, path: string): string[] {
  if (isRecord(before) && isRecord(now)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(now)])].sort();
    return keys.flatMap((key) => differingPaths(before[key], now[key], `${path}${key}.`));
  }
  const [a, b] = [JSON.stringify(before) ?? "absent", JSON.stringify(now) ?? "absent"];
  return a === b ? [] : [`${path.replace(/\.$/u, "")} was ${a}, now ${b}`];
}

/** Writes through a temporary name and a rename, so that no reader and no crash sees half a file. */
export function writeAtomically(file: string, content: string | Uint8Array): void {
  mkdirSync(dirname(file), { recursive: true });
  const temporary = `${file}.${process.pid}.tmp`;
  writeFileSync(temporary, content, { flush: true });
  renameSync(temporary, file);
}

function lockFolder(path: string): () => void {
  const lock = join(path, "lock");
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      writeFileSync(lock, String(process.pid), { flag: "wx" });
      return () => rmSync(lock, { force: true });
    } catch (cause) {
      const holder = Number(existsSync(lock) ? readFileSync(lock, "utf8") : Number.NaN);
      if (isAlive(holder)) {
        throw new RootstepError("RUN_LOCKED", {
          what: `process ${holder} writes to this run folder`,
          where: path,
          cause,
        });
      }
      rmSync(lock, { force: true }); // its holder was killed
    }
  }
  throw new RootstepError("RUN_LOCKED", { what: "the lock file cannot be taken", where: lock });
}
