import { existsSync } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { sha256 } from "../src/checksum.ts";
import { isError, RootstepError } from "../src/errors.ts";
import { engineSchema } from "./engine-config.ts";
import type { EngineState } from "./engines/engine.ts";

const blobSchema = z.strictObject({ bytes: z.number().int().nonnegative(), sha256: z.string().length(64) });

const contentSchema = z.strictObject({
  version: z.literal(1),
  kind: z.enum(["grpo", "sft"]),
  stepsDone: z.number().int().nonnegative(),
  /** Why it was written; an interrupted run's extra checkpoint goes once the next regular one is there. */
  reason: z.enum(["start", "scheduled", "best", "final", "interrupted"]),
  configHash: z.string(),
  dataHash: z.string(),
  engine: z.string(),
  /** What opens the policy again: engine, model and tokenizer; absent in older checkpoints. */
  policy: z.strictObject({ engine: engineSchema, codec: z.string() }).optional(),
  /** State of the loop; its schema belongs to the loop. */
  loop: z.unknown(),
  files: z.strictObject({ weights: blobSchema, optimizer: blobSchema.optional(), rollouts: blobSchema.optional() }),
});

/** `state.json`: the content and a checksum over it. */
const stateFileSchema = z.strictObject({ content: z.unknown(), sha256: z.string() });

/** What a checkpoint says about itself. */
export type CheckpointContent = z.infer<typeof contentSchema>;

export interface Checkpoint {
  readonly folder: string;
  readonly content: CheckpointContent;
  readonly engineState: EngineState;
  /** Batches that were sampled and not yet trained on, as JSON; absent without overlap. */
  readonly rollouts?: Uint8Array;
}

const WEIGHTS = "weights.bin";
const OPTIMIZER = "optimizer.bin";
const ROLLOUTS = "rollouts.json";
const STATE = "state.json";
const UNFINISHED = ".writing-";
const NAME = /^step-(\d{6,})$/;

/** `step-000040`: after 40 steps. */
export function checkpointName(stepsDone: number): string {
  return `step-${String(stepsDone).padStart(6, "0")}`;
}

/** Steps of the checkpoints in a folder, ascending; half-written ones do not count. */
export async function listCheckpoints(folder: string): Promise<number[]> {
  if (!existsSync(folder)) return [];
  const steps = (await readdir(folder)).flatMap((name) => {
    const digits = NAME.exec(name)?.[1];
    return digits === undefined ? [] : [Number(digits)];
  });
  return steps.sort((a, b) => a - b);
}

/**
 * Writes a checkpoint under a temporary name, flushes it and renames it: a crash at any moment leaves either no
 * folder of that name or a whole one.
 */
export async function saveCheckpoint(
  folder: string,
  content: Omit<CheckpointContent, "version" | "files">,
  engineState: EngineState,
  rollouts?: Uint8Array,
): Promise<string> {
  const name = checkpointName(content.stepsDone);
  const temporary = join(folder, UNFINISHED + name);
  const target = join(folder, name);
  const { weights, optimizer } = engineState;
  const described: CheckpointContent = {
    version: 1,
    ...content,
    files: {
      weights: describe(weights),
      ...(optimizer && { optimizer: describe(optimizer) }),
      ...(rollouts && { rollouts: describe(rollouts) }),
    },
  };
  try {
    await rm(temporary, { recursive: true, force: true });
    await mkdir(temporary, { recursive: true });
    await writeDurably(join(temporary, WEIGHTS), weights);
    if (optimizer) await writeDurably(join(temporary, OPTIMIZER), optimizer);
    if (rollouts) await writeDurably(join(temporary, ROLLOUTS), rollouts);
    const stateFile = { content: described, sha256: sha256(JSON.stringify(described)) };
    await writeDurably(join(temporary, STATE), `${JSON.stringify(stateFile, null, 2)}\n`);
    await rm(target, { recursive: true, force: true });
    await rename(temporary, target);
    await syncFolder(folder);
  } catch (cause) {
    throw new RootstepError("FILE_UNREADABLE", { what: "the checkpoint could not be written", where: target, cause });
  }
  return target;
}

/** Reads one checkpoint and verifies every checksum. @throws RootstepError CHECKPOINT_CORRUPT, FILE_MISSING */
export async function loadCheckpoint(folder: string): Promise<Checkpoint> {
  if (!existsSync(folder)) throw new RootstepError("FILE_MISSING", { what: "no checkpoint there", where: folder });
  const content = parseState(await readPart(folder, STATE), folder);
  const weights = await readBlob(folder, WEIGHTS, content.files.weights);
  const { optimizer, rollouts } = content.files;
  const engineState =
    optimizer === undefined ? { weights } : { weights, optimizer: await readBlob(folder, OPTIMIZER, optimizer) };
  return {
    folder,
    content,
    engineState,
    ...(rollouts && { rollouts: await readBlob(folder, ROLLOUTS, rollouts) }),
  };
}

export interface LatestCheckpoint {
  readonly checkpoint: Checkpoint | undefined;
  /** Newer ones that were passed over, with the CHECKPOINT_CORRUPT that says why. */
  readonly corrupt: readonly { readonly folder: string; readonly error: RootstepError }[];
}

/**
 * The newest intact checkpoint. Corrupt ones are reported and the one before is taken; if there are checkpoints but
 * none is intact, that is an error and not a fresh start. @throws RootstepError CHECKPOINT_CORRUPT
 */
export async function loadLatestIntact(folder: string): Promise<LatestCheckpoint> {
  const corrupt: { folder: string; error: RootstepError }[] = [];
  for (const step of (await listCheckpoints(folder)).reverse()) {
    const candidate = join(folder, checkpointName(step));
    try {
      return { checkpoint: await loadCheckpoint(candidate), corrupt };
    } catch (error) {
      if (!isError(error, "CHECKPOINT_CORRUPT")) throw error;
      corrupt.push({ folder: candidate, error });
    }
  }
  if (corrupt.length === 0) return { checkpoint: undefined, corrupt };
  throw new RootstepError("CHECKPOINT_CORRUPT", {
    what: `none of the ${corrupt.length} checkpoints is intact`,
    where: folder,
    hint: "Delete the folder to start afresh, or restore a checkpoint from a copy.",
    cause: corrupt[0]?.error,
  });
}

/** Takes a corrupt checkpoint out of the way, to be written again; the evidence stays beside it. */
export async function setAside(checkpointFolder: string): Promise<void> {
  await rm(`${checkpointFolder}.corrupt`, { recursive: true, force: true });
  await rename(checkpointFolder, `${checkpointFolder}.corrupt`);
}

/** Removes what a crash left half-written. */
export async function removeUnfinished(folder: string): Promise<void> {
  if (!existsSync(folder)) return;
  for (const name of await readdir(folder)) {
    if (name.startsWith(UNFINISHED)) await rm(join(folder, name), { recursive: true, force: true });
  }
}

async function removeCheckpoint(folder: string, stepsDone: number): Promise<void> {
  await rm(join(folder, checkpointName(stepsDone)), { recursive: true, force: true });
}

/**
 * Keeps the newest `keep` checkpoints that belong to the run's own schedule, and those in `protect` (the best one).
 * Extra ones of an interruption go as soon as a later checkpoint exists. Unreadable ones are left for a person to see.
 */
export async function pruneCheckpoints(folder: string, keep: number, protect: readonly number[]): Promise<void> {
  const steps = await listCheckpoints(folder);
  const latest = steps.at(-1);
  const regular: number[] = [];
  for (const step of steps) {
    const reason = await reasonOf(join(folder, checkpointName(step)));
    if (reason === undefined) continue;
    if (reason !== "interrupted") regular.push(step);
    else if (step !== latest) await removeCheckpoint(folder, step);
  }
  for (const step of regular.slice(0, -keep)) {
    if (!protect.includes(step)) await removeCheckpoint(folder, step);
  }
}

async function reasonOf(folder: string): Promise<CheckpointContent["reason"] | undefined> {
  try {
    return parseState(await readPart(folder, STATE), folder).reason;
  } catch (error) {
    if (isError(error, "CHECKPOINT_CORRUPT")) return undefined;
    throw error;
  }
}

function parseState(bytes: Uint8Array, folder: string): CheckpointContent {
  const where = join(folder, STATE);
  const file = stateFileSchema.safeParse(parseJson(bytes, where));
  // Taken over the content as it stands in the file: JSON.parse keeps the order of keys.
  if (!file.success || sha256(JSON.stringify(file.data.content)) !== file.data.sha256) {
    throw new RootstepError("CHECKPOINT_CORRUPT", { what: "the checksum of state.json does not match", where });
  }
  const content = contentSchema.safeParse(file.data.content);
  if (content.success) return content.data;
  const what = "state.json has another shape: it was written by another version";
  throw new RootstepError("RUN_VERSION", { what, where, cause: content.error });
}

function parseJson(bytes: Uint8Array, where: string): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch (cause) {
    throw new RootstepError("CHECKPOINT_CORRUPT", { what: "state.json is not JSON", where, cause });
  }
}

async function readBlob(folder: string, name: string, expected: z.infer<typeof blobSchema>): Promise<Uint8Array> {
  const bytes = await readPart(folder, name);
  if (bytes.length === expected.bytes && sha256(bytes) === expected.sha256) return bytes;
  const what = `the checksum of ${name} does not match`;
  throw new RootstepError("CHECKPOINT_CORRUPT", { what, where: join(folder, name) });
}

async function readPart(folder: string, name: string): Promise<Uint8Array> {
  try {
    return await readFile(join(folder, name));
  } catch (cause) {
    throw new RootstepError("CHECKPOINT_CORRUPT", { what: `${name} cannot be read`, where: join(folder, name), cause });
  }
}

function describe(bytes: Uint8Array): z.infer<typeof blobSchema> {
  return { bytes: bytes.length, sha256: sha256(bytes) };
}

async function writeDurably(path: string, data: string | Uint8Array): Promise<void> {
  const file = await open(path, "w");
  try {
    await file.writeFile(data);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
