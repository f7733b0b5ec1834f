import { join, resolve } from "node:path";
import { sha256 } from "../src/checksum.ts";
import { RootstepError } from "../src/errors.ts";
import { type Environment, keyFromEnvironment, type Secret } from "../src/models/key.ts";
import { parseServerUrl } from "../src/models/server-url.ts";
import type { EngineConfig, SamplingConfig, ServersConfig } from "./engine-config.ts";
import { openEmbeddedEngine } from "./engines/embedded/engine.ts";
import type { RolloutSource, TeacherCodec, TrainingEngine } from "./engines/engine.ts";
import { openTinkerEngine, type TinkerEngine } from "./engines/tinker/engine.ts";
import { tinkerProfile } from "./engines/tinker/profiles.ts";
import { exportModel, removeOtherVersions } from "./model-export.ts";
import { openTextCodec, type TextCodec } from "./text-codec.ts";
import { vllmRollouts } from "./vllm/rollouts.ts";
import { openVllmServer, type VllmServer } from "./vllm/server.ts";
import { unpackWeights } from "./vllm/unpack.ts";
import { type SyncMode, type SyncProbe, type SyncReport, vllmWeightSync } from "./vllm/weight-sync.ts";

export interface TrainingServers {
  readonly engine: EngineConfig;
  readonly sampling: SamplingConfig;
  readonly servers: ServersConfig;
}

/** What a run trains with. */
export interface OpenedEngine {
  readonly engine: TrainingEngine;
  /** What samples, where it is not the engine itself. */
  readonly rollouts?: RolloutSource;
  readonly sync?: (policyVersion: number) => Promise<void>;
  /** What the run should know of its servers. */
  readonly notes: readonly string[];
  close(): Promise<void>;
}

export interface OpenEngineOptions {
  readonly config: TrainingServers;
  readonly environment: Environment;
  /** Run folder, for the engine's journal and weights on their way. */
  readonly folder: string;
  readonly threads?: number;
  readonly signal?: AbortSignal | undefined;
  /** Opens the model's tokenizer and template; the folder of the configuration by default. */
  readonly openCodec?: (config: TinkerConfig) => TextCodec;
  readonly onSync?: (report: SyncReport) => void;
  readonly onRetry?: (error: RootstepError, server: string) => void;
}

/** Codec and limits of an engine, without opening it: what examples and plans need. */
export async function describeEngine(
  config: EngineConfig,
): Promise<{ readonly codec: TeacherCodec; readonly limits: TrainingEngine["limits"] }> {
  if (config.kind === "tinker") return { codec: textCodec(config), limits: tinkerLimits(config) };
  const engine = await openEmbeddedEngine();
  try {
    return { codec: engine.codec, limits: engine.limits };
  } finally {
    await engine.close();
  }
}

/**
 * Opens the engine of a configuration and the servers that sample for it.
 * @throws RootstepError CONFIG_INVALID where an address is missing, KEY_MISSING, and those of the servers
 */
export async function openEngine(options: OpenEngineOptions): Promise<OpenedEngine> {
  const { config, threads = 2 } = options;
  if (config.engine.kind === "embedded") {
    if (config.sampling.from !== "engine") {
      throw new RootstepError("CONFIG_INVALID", {
        what: "the embedded engine samples itself",
        where: "sampling.from",
        hint: "Leave sampling out, or choose an engine of kind tinker.",
      });
    }
    const engine = await openEmbeddedEngine({ threads });
    return { engine, notes: [], close: () => engine.close() };
  }
  const engine = await openTinker(config.engine, {
    ...options,
    ...(options.openCodec && { codec: options.openCodec(config.engine) }),
    servers: config.servers,
    journal: join(options.folder, "engine-journal.jsonl"),
  });
  try {
    if (config.sampling.from === "engine") return { engine, notes: engine.notes, close: () => engine.close() };
    const side = vllmSide(engine, config.sampling, options);
    return {
      ...side,
      engine,
      notes: engine.notes,
      async close() {
        await side.close();
        await engine.close();
      },
    };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

export type TinkerConfig = Extract<EngineConfig, { readonly kind: "tinker" }>;

const tinkerLimits = ({ maxPrompt, maxCompletion }: TinkerConfig): TrainingEngine["limits"] => ({
  maxPrompt,
  maxCompletion,
  groupSize: Number.MAX_SAFE_INTEGER,
});

/** The codec of a model's own files. */
export const textCodec = ({ modelFolder, maxPrompt, templateOptions }: TinkerConfig) =>
  openTextCodec({ folder: modelFolder, maxPrompt, templateOptions });

/**
 * Opens a model on the Tinker server of a configuration.
 * @throws RootstepError CONFIG_INVALID where its address is missing, KEY_MISSING, ENGINE_FAILED, MODEL_*
 */
export async function openTinker(
  config: TinkerConfig,
  options: {
    readonly servers: ServersConfig;
    readonly environment: Environment;
    readonly codec?: TextCodec;
    readonly journal?: string;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<TinkerEngine> {
  const { servers, journal } = options;
  if (servers.engine === undefined) {
    const what = "the training engine has no address";
    throw new RootstepError("CONFIG_INVALID", { what, where: "servers.engine" });
  }
  return openTinkerEngine({
    address: {
      url: parseServerUrl(servers.engine, "servers.engine"),
      key: keyOf(servers.engineKeyEnv, options.environment),
    },
    profile: tinkerProfile(config.profile),
    baseModel: config.baseModel,
    codec: options.codec ?? textCodec(config),
    limits: tinkerLimits(config),
    lora: { rank: config.loraRank, seed: config.loraSeed },
    ...(journal !== undefined && { journal }),
    resultMs: servers.resultSeconds * 1000,
    signal: options.signal,
  });
}

/** The vLLM servers of a configuration. @throws RootstepError CONFIG_INVALID (no address, or none that can be read), KEY_MISSING */
export function openRolloutServers(servers: ServersConfig, environment: Environment): VllmServer[] {
  if (servers.rollouts.length === 0) {
    throw new RootstepError("CONFIG_INVALID", { what: "no vLLM server has an address", where: "servers.rollouts" });
  }
  const key = keyOf(servers.rolloutKeyEnv, environment);
  const limitMs = 1000 * servers.requestSeconds;
  const timeouts = { firstByteMs: limitMs, totalMs: 1.5 * limitMs };
  return servers.rollouts.map((address, i) =>
    openVllmServer({ url: parseServerUrl(address, `servers.rollouts.${i}`), key, timeouts }),
  );
}

function vllmSide(
  engine: TinkerEngine,
  sampling: Extract<SamplingConfig, { readonly from: "vllm" }>,
  options: OpenEngineOptions,
): Pick<OpenedEngine, "rollouts" | "sync" | "close"> {
  const { servers } = options.config;
  requireSyncMode(engine, sampling.sync);
  const opened = openRolloutServers(servers, options.environment);
  const here = servers.weightsFolder ?? join(options.folder, "sampler-weights");
  const there = servers.weightsFolderThere ?? here;
  // A name of its own: two runs on one server would sample from each other's weights.
  const adapter = `policy-${sha256(resolve(options.folder)).slice(0, 12)}`;
  const sync = vllmWeightSync({
    mode: sampling.sync,
    servers: opened,
    model: sampling.model,
    adapter,
    exportWeights: async (policyVersion) => {
      const name = `version-${policyVersion}`;
      if (sampling.sync === "lora") await unpackWeights(await engine.downloadSamplerWeights(), join(here, name));
      else await exportModel(engine, { checkpoints: servers.checkpointsFolder, folder: join(here, name) });
      return join(there, name);
    },
    probe: probeOf(engine),
    tolerance: sampling.probeTolerance,
  });
  const rollouts = vllmRollouts({
    servers: opened,
    model: sync.model,
    maxCompletion: engine.limits.maxCompletion,
    concurrency: servers.concurrency,
    attempts: servers.attempts,
    policyVersion: () => sync.served,
    ...(options.onRetry && { onRetry: options.onRetry }),
  });
  return {
    rollouts,
    sync: async (policyVersion) => {
      // Pushed whether or not anybody listens: an argument of an optional call is not evaluated without one.
      const report = await sync.push(policyVersion, options.signal);
      // Of whole models, 16 GB each at 8 billion parameters, only the one that is served stays.
      if (sampling.sync !== "lora") await removeOtherVersions(here, policyVersion);
      options.onSync?.(report);
    },
    // A server that still knows the adapter reads its folder again when it needs it, and dies where the folder is gone.
    async close() {
      await Promise.all(opened.map((server) => server.unloadLora(adapter).catch(() => {})));
    },
  };
}

/** @throws RootstepError CONFIG_INVALID where what the engine saves does not go by that mode */
function requireSyncMode(engine: TinkerEngine, mode: Exclude<SyncMode, "engine">): void {
  const { id, samplerWeights } = engine.profile;
  const known: Record<typeof samplerWeights, readonly SyncMode[]> = {
    adapter: ["lora"],
    model: ["disk", "transfer"],
    unknown: [],
  };
  const modes = known[samplerWeights];
  if (modes.includes(mode)) return;
  const saves = {
    adapter: 'saves LoRA adapters for samplers: they reach vLLM by "lora" alone',
    model: 'saves whole models for samplers: they reach vLLM by "disk" or "transfer"',
    unknown: "is not known to save what vLLM could load",
  }[samplerWeights];
  throw new RootstepError("CONFIG_INVALID", {
    what: `profile ${id} ${saves}, not by "${mode}"`,
    where: "sampling.sync",
    hint:
      modes.length === 0 ? "Let the engine sample itself (sampling.from: engine)." : `Set it to ${modes.join(" or ")}.`,
  });
}

/** A short sequence of everyday text: whether two servers hold the same weights shows on any. */
export function probeOf(engine: TinkerEngine): SyncProbe {
  const text = "<think>The planner asked for the wrong year.</think><answer>Planner | 3</answer>";
  const [first = 0, ...rest] = engine.codec.encodeText(text);
  return {
    tokens: [first, ...rest],
    engineLogprobs: async (): Promise<readonly number[]> => {
      const completion = { tokens: rest, weights: rest.map(() => 0), advantage: 0 };
      const [[logprobs = []] = []] = await engine.forward([{ prompt: [first], completions: [completion] }]);
      return logprobs;
    },
  };
}

/** The key of a server; undefined where no variable is named. @throws RootstepError KEY_MISSING */
function keyOf(name: string | null, environment: Environment): Secret | undefined {
  return name === null ? undefined : keyFromEnvironment([name], environment);
}
