import { existsSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "../src/checksum.ts";
import { RootstepError } from "../src/errors.ts";
import { batchedPolicy } from "./batched-policy.ts";
import { type Checkpoint, loadCheckpoint, loadLatestIntact } from "./checkpoints.ts";
import { openEmbeddedEngine } from "./engines/embedded/engine.ts";
import { createTracerPolicy, type EngineTracerPolicy } from "./tracer-policy.ts";

/** The name of the embedded tracer before any training of the user's: the weights that ship. */
export const WARM_START = "warm-start";

/**
 * The embedded tracer as a policy that answers.
 *
 * @param source a training run (its newest intact checkpoint), one checkpoint folder, or `warm-start`
 * @throws RootstepError FILE_MISSING, CHECKPOINT_CORRUPT
 */
export async function openTracerPolicy(
  source: string,
): Promise<{ readonly policy: EngineTracerPolicy; close(): Promise<void> }> {
  const checkpoint = source === WARM_START ? undefined : await findCheckpoint(source);
  const engine = await openEmbeddedEngine({ threads: 2 });
  if (checkpoint !== undefined) await engine.importState(checkpoint.engineState);
  const version = checkpoint === undefined ? WARM_START : `step-${checkpoint.content.stepsDone}`;
  const policy = createTracerPolicy(engine, engine.codec, `tracer:${engine.id}:${version}`);
  return { policy: batchedPolicy(policy), close: () => engine.close() };
}

/**
 * sha256 of the weights that `openTracerPolicy` would answer with: what a run of predictions depends on.
 * @throws RootstepError FILE_MISSING, CHECKPOINT_CORRUPT
 */
export async function tracerChecksum(source: string): Promise<string> {
  if (source !== WARM_START) return sha256((await findCheckpoint(source)).engineState.weights);
  const engine = await openEmbeddedEngine();
  try {
    return sha256((await engine.exportState()).weights);
  } finally {
    await engine.close();
  }
}

/**
 * One checkpoint folder, or the newest intact checkpoint of a training run.
 * @throws RootstepError FILE_MISSING, CHECKPOINT_CORRUPT
 */
export async function findCheckpoint(source: string): Promise<Checkpoint> {
  if (existsSync(join(source, "state.json"))) return loadCheckpoint(source);
  const { checkpoint } = await loadLatestIntact(join(source, "checkpoints"));
  if (checkpoint !== undefined) return checkpoint;
  throw new RootstepError("FILE_MISSING", {
    what: "there is no checkpoint",
    where: source,
    hint: `Give the folder of a training run, one of its checkpoints, or "${WARM_START}".`,
  });
}
