import { RootstepError } from "../../src/errors.ts";
import type { TrainConfig } from "../config.ts";
import type { ClusterConfig } from "./cluster-config.ts";
import {
  engineMemory,
  type MemoryEstimate,
  parameterCount,
  type RunLengths,
  rolloutMemory,
  sizesOf,
  stepSeconds,
} from "./memory.ts";

/** A training run with everything that launching it needs. */
export interface LaunchJob {
  readonly name: string;
  readonly config: TrainConfig;
  readonly cluster: ClusterConfig;
  readonly lengths: RunLengths;
  /** Model that engine and vLLM load. */
  readonly model: string;
  /** Served name of the base model. */
  readonly served: string;
  /** Paths as the nodes see them: the configuration, the data, the run folder. */
  readonly configFile: string;
  readonly data: readonly string[];
  readonly out: string;
}

export interface LaunchPlan {
  readonly nodes: number;
  readonly rolloutServers: number;
  readonly parameters: number;
  readonly engine: MemoryEstimate;
  readonly rollouts: MemoryEstimate & { readonly fullLengthSequences: number };
  /** Seconds of a step and hours of the run, if every answer is as long as it may be. */
  readonly seconds: { readonly sampling: number; readonly training: number };
  readonly hoursAtMost: number;
  readonly warnings: readonly string[];
}

/**
 * Reads the job out of a configuration.
 * @throws RootstepError CONFIG_INVALID where it has no cluster, or trains the embedded engine
 */
export function launchJob(
  config: TrainConfig,
  paths: { readonly configFile: string; readonly data: readonly string[]; readonly out: string; readonly name: string },
): LaunchJob {
  const { cluster, engine, sampling } = config;
  if (cluster === undefined) {
    const hint = "Add the section cluster; configs/qwen3-8b-h100x8.yaml is an example.";
    throw new RootstepError("CONFIG_INVALID", { what: "the configuration names no cluster", where: "cluster", hint });
  }
  if (engine.kind !== "tinker" || sampling.from !== "vllm") {
    throw new RootstepError("CONFIG_INVALID", {
      what: "train launch starts a training engine and vLLM servers; this configuration trains without them",
      where: "engine.kind, sampling.from",
      hint: "Run it where you are: rootstep train run.",
    });
  }
  const { maxPrompt, maxCompletion, loraRank } = engine;
  return {
    ...paths,
    config,
    cluster,
    lengths: { maxPrompt, maxCompletion, loraRank },
    model: engine.baseModel,
    served: sampling.model,
  };
}

/**
 * Estimates memory and time of a job.
 * @throws RootstepError LAYOUT_INVALID where it cannot fit
 */
export function planLaunch(job: LaunchJob): LaunchPlan {
  const { cluster, config, lengths } = job;
  requireLayout(cluster);
  const engine = engineMemory(cluster, lengths);
  const rollouts = rolloutMemory(cluster, lengths);
  requireFit("the training engine", engine);
  requireFit("a vLLM server", rollouts);
  const seconds = stepSeconds(cluster, lengths, {
    prompts: config.promptsPerStep,
    groupSize: config.groupSize,
    epochs: config.epochsPerBatch,
  });
  const warnings: string[] = [];
  if (rollouts.fullLengthSequences < config.groupSize) {
    warnings.push(
      `a vLLM server's cache holds ${rollouts.fullLengthSequences} answers of full length, fewer than one group of ${config.groupSize}: it will preempt`,
    );
  }
  if (engine.total > 0.9 * engine.available) warnings.push("the training engine fills over 90% of its GPUs");
  if (cluster.parameters === "full" && config.engine.kind === "tinker" && config.sampling.from === "vllm") {
    if (config.sampling.sync === "lora")
      warnings.push("all parameters are trained, but sampling.sync brings adapters only");
  }
  return {
    nodes: nodesOf(cluster),
    rolloutServers: cluster.rolloutGpus / cluster.tensorParallel,
    parameters: parameterCount(sizesOf(cluster)),
    engine,
    rollouts,
    seconds,
    hoursAtMost: (config.steps * (seconds.sampling + seconds.training)) / 3600,
    warnings,
  };
}

/** GPUs of the first node that vLLM may take. */
export function rolloutGpusOnFirstNode({ shared, gpusPerNode, engineGpus, rolloutGpus }: ClusterConfig): number {
  return Math.min(rolloutGpus, shared ? gpusPerNode : gpusPerNode - engineGpus);
}

export function nodesOf(cluster: ClusterConfig): number {
  return 1 + Math.ceil((cluster.rolloutGpus - rolloutGpusOnFirstNode(cluster)) / cluster.gpusPerNode);
}

function requireLayout(cluster: ClusterConfig): void {
  const { engineGpus, gpusPerNode, rolloutGpus, tensorParallel } = cluster;
  const invalid = (what: string, where: string): RootstepError => new RootstepError("LAYOUT_INVALID", { what, where });
  if (engineGpus > gpusPerNode) {
    throw invalid(`the engine's ${engineGpus} GPUs are more than the ${gpusPerNode} of a node`, "cluster.engineGpus");
  }
  if (rolloutGpus % tensorParallel !== 0 || gpusPerNode % tensorParallel !== 0) {
    throw invalid(`${rolloutGpus} GPUs cannot be cut into servers of ${tensorParallel}`, "cluster.tensorParallel");
  }
  if (rolloutGpusOnFirstNode(cluster) % tensorParallel !== 0) {
    throw invalid("the first node has GPUs left that make no whole vLLM server", "cluster.engineGpus");
  }
}

function requireFit(name: string, estimate: MemoryEstimate): void {
  if (estimate.total <= estimate.available) return;
  const gb = (bytes: number): string => (bytes / 1e9).toFixed(1);
  const parts = estimate.parts.map((part) => `${part.name} ${gb(part.bytes)}`).join(", ");
  throw new RootstepError("LAYOUT_INVALID", {
    what: `${name} needs ${gb(estimate.total)} GB on each GPU and has ${gb(estimate.available)}: ${parts}`,
    where: "cluster",
  });
}
