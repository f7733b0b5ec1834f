import { asRootstepError, RootstepError } from "../src/errors.ts";
import type { Environment } from "../src/models/key.ts";
import type { Checkpoint } from "./checkpoints.ts";
import type { EngineConfig, ServersConfig } from "./engine-config.ts";
import type { TinkerEngine } from "./engines/tinker/engine.ts";
import { openRolloutServers, openTinker, probeOf, type TinkerConfig, textCodec } from "./open-engine.ts";
import type { OpenTracer } from "./open-tracer.ts";
import type { TextCodec } from "./text-codec.ts";
import { createTracerPolicy } from "./tracer-policy.ts";
import { vllmRollouts } from "./vllm/rollouts.ts";
import type { VllmServer } from "./vllm/server.ts";

/** What opens a checkpoint's policy. */
export interface CheckpointPolicy<Engine extends EngineConfig = EngineConfig> {
  readonly engine: Engine;
  /** Id of the codec it was trained with; undefined where the checkpoint does not say. */
  readonly codec: string | undefined;
}

/** Where the weights of a checkpoint are served. */
export interface TracerServing {
  readonly servers: ServersConfig;
  /** Name under which the vLLM servers serve them: an adapter's or a model's. Undefined lets the training engine's server answer. */
  readonly served?: string | undefined;
  /** Nats by which a probe may differ between that name and the training engine, where both can be asked. */
  readonly probeTolerance?: number;
  readonly environment: Environment;
  readonly signal?: AbortSignal | undefined;
  /** Opens the model's tokenizer and template; the folder of the configuration by default. */
  readonly openCodec?: (config: TinkerConfig) => TextCodec;
}

const PROBE_TOLERANCE = 0.05;

/**
 * The policy of a checkpoint whose weights lie on a Tinker server: that server answers, or vLLM servers do that serve them by name.
 * Long logs are cut by the step-aware budget to the prompt it was trained with.
 *
 * @throws RootstepError as `openTracerPolicy`
 */
export async function openServedTracer(
  checkpoint: Checkpoint,
  policy: CheckpointPolicy<TinkerConfig>,
  serving: TracerServing | undefined,
): Promise<OpenTracer> {
  const { servers, served } = serving ?? {};
  if (serving === undefined || (served === undefined && servers?.engine === undefined)) {
    throw new RootstepError("CONFIG_INVALID", {
      what: "this checkpoint's weights lie on a training server, and no server is named that answers with them",
      where: checkpoint.folder,
      hint: "Use `rootstep train eval` with --servers.engine URL, or with --servers.rollouts URL --served NAME for vLLM.",
    });
  }
  const codec = openCheckedCodec(policy, serving);
  return served === undefined
    ? byEngine(checkpoint, policy.engine, codec, serving)
    : byVllm(checkpoint, policy.engine, codec, { ...serving, served });
}

/** @throws RootstepError RUN_MISMATCH where the tokenizer is another than the one it was trained with */
function openCheckedCodec(
  { engine, codec: trained }: CheckpointPolicy<TinkerConfig>,
  serving: TracerServing,
): TextCodec {
  const codec = (serving.openCodec ?? textCodec)(engine);
  if (trained === undefined || trained === codec.id) return withinLimit(codec, engine.maxPrompt);
  throw new RootstepError("RUN_MISMATCH", {
    what: `the checkpoint was trained with tokenizer and template ${trained}, the folder holds ${codec.id}`,
    where: engine.modelFolder,
    hint: "Put the model's files back as they were when it was trained: other tokens mean nothing to these weights.",
  });
}

/** Refuses a run whose step headers alone are too long: servers take such a prompt in silence, or cut it as they like. */
function withinLimit(codec: TextCodec, maxPrompt: number): TextCodec {
  return {
    ...codec,
    encodePrompt(trajectory) {
      const tokens = codec.encodePrompt(trajectory);
      if (tokens.length <= maxPrompt) return tokens;
      throw new RootstepError("VOCABULARY", {
        what: `the run takes ${tokens.length} tokens even with its log cut; the checkpoint was trained with at most ${maxPrompt}`,
        where: trajectory.id,
        hint: "Train with a larger engine.maxPrompt, or leave runs of so many steps out.",
      });
    },
  };
}

async function byEngine(
  checkpoint: Checkpoint,
  config: TinkerConfig,
  codec: TextCodec,
  serving: TracerServing,
): Promise<OpenTracer> {
  const engine = await openWeights(checkpoint, config, codec, serving);
  const id = `tracer:${engine.id}:step-${checkpoint.content.stepsDone}`;
  return { policy: createTracerPolicy(engine, codec, id), notes: [], close: () => engine.close() };
}

/** A model on the Tinker server with the checkpoint's weights. @throws RootstepError CHECKPOINT_GONE */
async function openWeights(
  { content, engineState, folder }: Checkpoint,
  config: TinkerConfig,
  codec: TextCodec,
  serving: TracerServing,
): Promise<TinkerEngine> {
  const engine = await openTinker(config, { ...serving, codec });
  try {
    await engine.importState({ weights: engineState.weights });
    return engine;
  } catch (thrown) {
    await engine.close();
    const error = asRootstepError(thrown);
    // 404 as the server's answer, or as what its work came to.
    const gone = causedBy404(error) || (error.code === "ENGINE_FAILED" && /not found/iu.test(error.what));
    if (!gone) throw error;
    throw new RootstepError("CHECKPOINT_GONE", {
      what: `the training server no longer holds the weights of step ${content.stepsDone}: ${error.what}`,
      where: folder,
      cause: error,
    });
  }
}

function causedBy404(error: RootstepError): boolean {
  return error.status === 404 || (error.cause instanceof RootstepError && causedBy404(error.cause));
}

async function byVllm(
  checkpoint: Checkpoint,
  config: TinkerConfig,
  codec: TextCodec,
  serving: TracerServing & { readonly served: string },
): Promise<OpenTracer> {
  const { servers, served, signal } = serving;
  const opened = openRolloutServers(servers, serving.environment);
  for (const server of opened) await requireServed(server, served, signal);
  if (servers.engine !== undefined) await requireSameWeights(opened, checkpoint, config, codec, serving);
  const source = vllmRollouts({
    servers: opened,
    model: served,
    maxCompletion: config.maxCompletion,
    concurrency: servers.concurrency,
    attempts: servers.attempts,
  });
  const unproved = `nothing proves that ${served} holds the weights of this checkpoint: name the training server too (--servers.engine) to have a probe compared`;
  return {
    policy: createTracerPolicy(source, codec, `tracer:${source.id}:step-${checkpoint.content.stepsDone}`),
    notes: servers.engine === undefined ? [unproved] : [],
    close: async () => {},
  };
}

/** @throws RootstepError ENGINE_FAILED where the server serves other models */
async function requireServed(server: VllmServer, served: string, signal: AbortSignal | undefined): Promise<void> {
  const names = (await server.models(signal)).map(({ id }) => id);
  if (names.includes(served)) return;
  throw new RootstepError("ENGINE_FAILED", {
    what: `the server serves ${names.join(", ") || "no model"}, not ${served}`,
    where: server.name,
    hint: "Load the adapter there (POST /v1/load_lora_adapter), start vLLM with these weights, or correct --served.",
  });
}

/** Compares a probe's log-probabilities with those of the checkpoint's weights on the training server. */
async function requireSameWeights(
  opened: readonly VllmServer[],
  checkpoint: Checkpoint,
  config: TinkerConfig,
  codec: TextCodec,
  serving: TracerServing & { readonly served: string },
): Promise<void> {
  const engine = await openWeights(checkpoint, config, codec, serving);
  try {
    const probe = probeOf(engine);
    const expected = await probe.engineLogprobs();
    for (const server of opened) {
      const found = await server.promptLogprobs(serving.served, probe.tokens, serving.signal);
      const worst = Math.max(...expected.map((logprob, i) => Math.abs(logprob - (found[i] ?? Number.NaN))));
      if (worst <= (serving.probeTolerance ?? PROBE_TOLERANCE)) continue;
      const what = `a probe of ${serving.served} differs by ${worst.toPrecision(3)} nats from the weights of step ${checkpoint.content.stepsDone}`;
      throw new RootstepError("SYNC_MISMATCH", {
        what,
        where: server.name,
        hint: "The name serves other weights: load this checkpoint's there, or evaluate the checkpoint that is loaded.",
      });
    }
  } finally {
    await engine.close();
  }
}
