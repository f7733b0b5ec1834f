import { byId } from "../../../src/registry.ts";
import { jsonEncoding, protobufEncoding, type TinkerEncoding } from "./encoding.ts";

/**
 * What differs between servers of the Tinker protocol. Measured on SkyRL 0.4 with JAX; the other rows follow the
 * servers' documentation and code and are marked as such in the README.
 */
export interface TinkerProfile {
  readonly id: string;
  readonly title: string;
  readonly encoding: TinkerEncoding;
  /**
   * How the server makes one number of many tokens. `token-sum`: Σ weight·loss. `sequence-mean`: Σ weight·loss / Σ weight
   * in a sequence, then the mean over all sequences since the last optim_step.
   */
  readonly reduction: "token-sum" | "sequence-mean";
  /** A request sent twice with the same seq_id runs once. Where not, one whose answer was lost is never sent again. */
  readonly deduplicates: boolean;
  /** A result may be fetched again after its answer was lost. */
  readonly resultsStay: boolean;
  /** Trains low-rank adapters, or all parameters: told by no lora_config in create_model, or by one of rank 0. */
  readonly parameters: "lora" | "full" | "full-as-rank-0";
  /**
   * What save_weights_for_sampler leaves for others to load: a tar of a PEFT adapter, or of the whole model in Hugging Face's format;
   * unknown where neither documentation nor code could be read.
   */
  readonly samplerWeights: "adapter" | "model" | "unknown";
  /** Name of the Adam parameter that clips the gradient's norm; undefined where the server cannot. */
  readonly gradientClipping: string | undefined;
  /** Name of the gradient norm among the metrics of optim_step, before clipping. */
  readonly gradientNorm: readonly string[];
  /** load_weights must be the first request of a new model. */
  readonly loadsFirst: boolean;
  /**
   * Saved sampler weights may be sampled from while the model trains on. Not so with SkyRL: its JAX backend writes the older weights
   * over those in training, and its FSDP backend puts the engines that sample to sleep for each update.
   */
  readonly samplesWhileTraining: boolean;
}

const SKYRL_NORM = ["skyrl.ai/grad_norm", "grad_norm"];

export const tinkerProfiles: readonly TinkerProfile[] = [
  {
    id: "skyrl-jax",
    title: "SkyRL 0.4, JAX backend (LoRA; CPU, TPU, GPU)",
    encoding: protobufEncoding,
    reduction: "sequence-mean",
    deduplicates: true,
    resultsStay: true,
    parameters: "lora",
    samplerWeights: "adapter",
    gradientClipping: undefined,
    gradientNorm: SKYRL_NORM,
    loadsFirst: true,
    samplesWhileTraining: false,
  },
  {
    id: "skyrl-train",
    title: "SkyRL 0.4, FSDP or Megatron backend",
    encoding: protobufEncoding,
    reduction: "token-sum",
    deduplicates: true,
    resultsStay: true,
    parameters: "lora",
    samplerWeights: "adapter",
    gradientClipping: undefined,
    gradientNorm: SKYRL_NORM,
    loadsFirst: true,
    samplesWhileTraining: false,
  },
  {
    id: "skyrl-train-full",
    title: "SkyRL 0.4, FSDP or Megatron backend, all parameters",
    encoding: protobufEncoding,
    reduction: "token-sum",
    deduplicates: true,
    resultsStay: true,
    parameters: "full-as-rank-0",
    samplerWeights: "model",
    gradientClipping: undefined,
    gradientNorm: SKYRL_NORM,
    loadsFirst: true,
    samplesWhileTraining: false,
  },
  {
    id: "verl-tinker",
    title: "verl behind a Tinker server (all parameters)",
    encoding: jsonEncoding,
    reduction: "token-sum",
    deduplicates: false,
    resultsStay: false,
    parameters: "full",
    samplerWeights: "unknown",
    gradientClipping: "grad_clip_norm",
    gradientNorm: ["grad_norm", "actor/grad_norm"],
    loadsFirst: false,
    samplesWhileTraining: false,
  },
  {
    id: "hosted",
    title: "Thinking Machines' hosted Tinker API (LoRA)",
    encoding: protobufEncoding,
    reduction: "token-sum",
    deduplicates: true,
    resultsStay: true,
    parameters: "lora",
    samplerWeights: "adapter",
    gradientClipping: "grad_clip_norm",
    gradientNorm: ["grad_norm", "optimizer/grad_norm"],
    loadsFirst: true,
    samplesWhileTraining: true,
  },
];

/** @throws RootstepError UNKNOWN_NAME listing the known ones */
export function tinkerProfile(id: string): TinkerProfile {
  return byId(tinkerProfiles, id, "Tinker profile", "engines");
}
