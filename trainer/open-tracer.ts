import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { sha256 } from "../src/checksum.ts";
import { RootstepError } from "../src/errors.ts";
import { readRunManifest } from "../src/runs/run-folder.ts";
import { batchedPolicy } from "./batched-policy.ts";
import { type Checkpoint, loadCheckpoint, loadLatestIntact } from "./checkpoints.ts";
import { engineSchema } from "./engine-config.ts";
import { openEmbeddedEngine } from "./engines/embedded/engine.ts";
import { type CheckpointPolicy, openServedTracer, type TracerServing } from "./served-tracer.ts";
import { createTracerPolicy, type EngineTracerPolicy } from "./tracer-policy.ts";

/** The name of the embedded tracer before any training of the user's: the weights that ship. */
export const WARM_START = "warm-start";

/** A tracer that answers, until it is closed. */
export interface OpenTracer {
  readonly policy: EngineTracerPolicy;
  /** What who reads its answers should know. */
  readonly notes: readonly string[];
  close(): Promise<void>;
}

/**
 * A trained tracer as a policy that answers.
 *
 * @param source a training run (its newest intact checkpoint), one checkpoint folder, or `warm-start`
 * @param serving where the weights of a checkpoint are served that does not hold them itself
 * @throws RootstepError FILE_MISSING, CHECKPOINT_CORRUPT; CONFIG_INVALID where the weights are on a server and none is named;
 * CHECKPOINT_GONE where that server does not hold them; ENGINE_FAILED, MODEL_*
 */
export async function openTracerPolicy(source: string, serving?: TracerServing): Promise<OpenTracer> {
  const checkpoint = source === WARM_START ? undefined : await findCheckpoint(source);
  if (checkpoint !== undefined) {
    const policy = policyOf(checkpoint);
    if (policy.engine.kind === "tinker")
      return openServedTracer(checkpoint, { ...policy, engine: policy.engine }, serving);
  }
  const engine = await openEmbeddedEngine({ threads: 2 });
  if (checkpoint !== undefined) await engine.importState(checkpoint.engineState);
  const version = checkpoint === undefined ? WARM_START : `step-${checkpoint.content.stepsDone}`;
  const policy = createTracerPolicy(engine, engine.codec, `tracer:${engine.id}:${version}`);
  return { policy: batchedPolicy(policy), notes: [], close: () => engine.close() };
}

/**
 * sha256 of the weights that `openTracerPolicy` would answer with: what a run of predictions depends on. Of weights on a server it
 * is that of the run, its step and where the server keeps them.
 * @throws RootstepError FILE_MISSING, CHECKPOINT_CORRUPT
 */
export async function tracerChecksum(source: string): Promise<string> {
  if (source !== WARM_START) {
    const { content, engineState } = await findCheckpoint(source);
    if (content.engine === "embedded") return sha256(engineState.weights);
    const { engine, configHash, dataHash, stepsDone } = content;
    return sha256(JSON.stringify([engine, configHash, dataHash, stepsDone, sha256(engineState.weights)]));
  }
  const engine = await openEmbeddedEngine();
  try {
    return sha256((await engine.exportState()).weights);
  } finally {
    await engine.close();
  }
}

/** What opens the policy of a checkpoint: it says so itself, or, of an older one, the manifest of its run does. */
function policyOf({ content, folder }: Checkpoint): CheckpointPolicy {
  if (content.policy !== undefined) return content.policy;
  if (content.engine === "embedded") return { engine: { kind: "embedded" }, codec: undefined };
  const run = dirname(dirname(folder));
  const settings = z.looseObject({ engine: engineSchema }).safeParse(readRunManifest(run).settings);
  if (settings.success) return { engine: settings.data.engine, codec: undefined };
  const what = "neither the checkpoint nor its run says what engine and model it is of";
  throw new RootstepError("RUN_VERSION", { what, where: folder, cause: settings.error });
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
