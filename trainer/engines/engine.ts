import type { LogCut } from "../../src/methods/method.ts";
import type { Label, Trajectory } from "../../src/trajectory/schema.ts";

/** One sampled completion. `logprobs[i]` is the policy's log-probability of `tokens[i]` at temperature 1. */
export interface Completion {
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
  readonly finishReason: "stop" | "length";
  /** Optimiser steps behind the policy that sampled it, where the sampler keeps count. */
  readonly policyVersion?: number;
}

export interface SampleRequest {
  /** P prompts of token ids. */
  readonly prompts: readonly (readonly number[])[];
  /** Completions per prompt (the group size n). */
  readonly n: number;
  /** 1 for rollouts; 0 takes the most likely token. */
  readonly temperature: number;
  /** Name of the random stream; the same name gives the same samples, whatever the batching. */
  readonly seed: string;
  readonly signal?: AbortSignal;
}

/** A prompt with the completions that are trained on; arrays run over the tokens of one completion. */
export interface TrainingGroup {
  readonly prompt: readonly number[];
  readonly completions: readonly {
    readonly tokens: readonly number[];
    /** Weight of each token in the loss (its mask and denominator). */
    readonly weights: readonly number[];
    /** One advantage for the completion (GRPO) or 1 (cross-entropy). */
    readonly advantage: number;
    /** Log-probabilities under the sampling policy; unused by cross-entropy. */
    readonly oldLogprobs?: readonly number[];
  }[];
  /** Weight of each prompt token in a language-model loss on the prompt (cross-entropy warm starts only). */
  readonly promptWeight?: number;
}

/**
 * The clipped surrogate of GRPO without KL (§4.2), or plain cross-entropy. The engine minimises −Σ weight · objective,
 * where the objective of a token is min(r·A, clip(r, 1 − clipLow, 1 + clipHigh)·A) with r = exp(logprob − oldLogprob),
 * or its logprob alone.
 */
export type Loss =
  | { readonly kind: "clipped-surrogate"; readonly clipLow: number; readonly clipHigh: number }
  | { readonly kind: "cross-entropy" };

export interface ForwardBackwardResult {
  readonly loss: number;
  /** Per group, per completion, per token: log-probability under the weights before the update. */
  readonly logprobs: readonly (readonly (readonly number[])[])[];
}

export interface OptimizerSettings {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  /** Global gradient norm above which the gradient is scaled down. */
  readonly maxGradNorm: number;
}

/** Turns trajectories into the tokens of a policy, and its tokens into text. */
export interface TracerCodec {
  readonly id: string;
  /** Prompt tokens. @throws RootstepError VOCABULARY where the trajectory cannot be written in them. */
  encodePrompt(trajectory: Trajectory): readonly number[];
  /** What of the log did not fit into that prompt; absent where a codec cuts nothing. */
  cutOf?(trajectory: Trajectory): LogCut | undefined;
  /** The completion as text, special end token dropped: what the reward reads. */
  decodeCompletion(tokens: readonly number[]): string;
}

/** A codec that can also write the answer a label asks for: what cross-entropy trains on. */
export interface TeacherCodec extends TracerCodec {
  /**
   * The completion a teacher gives for a label, end token included.
   * @throws RootstepError VOCABULARY, LABEL_OUTSIDE
   */
  encodeCompletion(trajectory: Trajectory, label: Pick<Label, "agent" | "step" | "reason">): readonly number[];
}

/** Samples from a policy: a vLLM server, an engine's own sampler, the embedded engine. */
export interface RolloutSource {
  readonly id: string;
  sample(request: SampleRequest): Promise<readonly (readonly Completion[])[]>;
}

/**
 * What updates the policy. `forwardBackward` adds to the gradient, `optimStep` applies and clears it.
 * The verbs follow the Tinker wire protocol, so that remote engines and the embedded one are interchangeable.
 */
export interface TrainingEngine extends RolloutSource {
  readonly codec: TeacherCodec;
  /** Largest prompt, completion and group the engine takes. */
  readonly limits: { readonly maxPrompt: number; readonly maxCompletion: number; readonly groupSize: number };
  /** Log-probabilities of given completions, without gradient. */
  forward(groups: readonly TrainingGroup[]): Promise<ForwardBackwardResult["logprobs"]>;
  forwardBackward(groups: readonly TrainingGroup[], loss: Loss): Promise<ForwardBackwardResult>;
  /** @returns the gradient norm before clipping. @throws RootstepError ENGINE_NAN */
  optimStep(settings: OptimizerSettings): Promise<{ readonly gradNorm: number }>;
  /**
   * A sampler of the weights as they are now, which later updates do not move: what samples while the engine trains. Absent where
   * the engine cannot keep them apart.
   */
  frozenSampler?(): Promise<RolloutSource>;
  /** Weights and optimiser state as one blob each, for checkpoints. */
  exportState(): Promise<EngineState>;
  importState(state: EngineState): Promise<void>;
  close(): Promise<void>;
}

export interface EngineState {
  readonly weights: Uint8Array;
  /** Optimiser moments and step count; absent in weights-only checkpoints. */
  readonly optimizer?: Uint8Array;
}
