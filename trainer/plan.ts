import { clipBound } from "./clip-schedule.ts";
import type { TrainConfig } from "./config.ts";
import type { TrainingExample } from "./dataset.ts";
import type { TrainingEngine } from "./engines/engine.ts";

/** What a run would do: the content of `train run --dry-run`. */
export interface TrainingPlan {
  readonly steps: number;
  readonly examples: number;
  readonly heldOut: number;
  /** Completions to sample: without and with every resampling round used up. */
  readonly rollouts: { readonly expected: number; readonly high: number };
  /** Greedy completions for evaluations. */
  readonly evaluationRollouts: number;
  /** Prompt tokens to read (each prompt once per group) and the most that can be sampled, where the limit is known. */
  readonly tokens: { readonly prompt: number; readonly completionAtMost: number | undefined };
  /** Optimiser steps, if no group is dead. */
  readonly updates: number;
  /** Passes over the training examples. */
  readonly epochs: number;
  readonly checkpoints: number;
  readonly clip: { readonly first: number; readonly last: number };
  readonly warnings: readonly string[];
}

/** Counts what a run would do and says what looks wrong about it; nothing is sampled. */
export function planTraining(
  config: TrainConfig,
  data: { readonly examples: readonly TrainingExample[]; readonly heldOut: readonly TrainingExample[] },
  limits?: TrainingEngine["limits"],
): TrainingPlan {
  const { steps, promptsPerStep, groupSize } = config;
  const prompts = steps * promptsPerStep;
  const rounds = config.deadGroups === "resample" ? 1 + config.resampleRounds : 1;
  const evaluations = 1 + Math.floor(steps / config.evalEvery) + (steps % config.evalEvery === 0 ? 0 : 1);
  const evaluationRollouts = data.heldOut.length === 0 ? 0 : evaluations * data.heldOut.length;
  const meanPrompt = meanLength(data.examples);
  return {
    steps,
    examples: data.examples.length,
    heldOut: data.heldOut.length,
    rollouts: { expected: prompts * groupSize, high: prompts * groupSize * rounds },
    evaluationRollouts,
    tokens: {
      prompt: Math.round(prompts * meanPrompt + evaluationRollouts * meanLength(data.heldOut)),
      completionAtMost: limits && (prompts * groupSize * rounds + evaluationRollouts) * limits.maxCompletion,
    },
    updates: steps * updatesPerStep(config),
    epochs: data.examples.length === 0 ? 0 : prompts / data.examples.length,
    checkpoints: 1 + Math.ceil(steps / config.checkpointEvery),
    clip: { first: clipBound(0, steps, config.B0), last: clipBound(steps - 1, steps, config.B0) },
    warnings: planWarnings(config, data, limits),
  };
}

function updatesPerStep(config: TrainConfig): number {
  return config.epochsPerBatch * Math.min(config.minibatches, config.promptsPerStep);
}

function planWarnings(
  config: TrainConfig,
  data: { readonly examples: readonly TrainingExample[]; readonly heldOut: readonly TrainingExample[] },
  limits: TrainingEngine["limits"] | undefined,
): string[] {
  const warnings: string[] = [];
  if (updatesPerStep(config) === 1) {
    warnings.push(
      "the clip can never act: with one update per batch every ratio is 1; set minibatches or epochsPerBatch above 1",
    );
  }
  if (config.minibatches > config.promptsPerStep) {
    warnings.push(`minibatches ${config.minibatches} is more than promptsPerStep ${config.promptsPerStep}`);
  }
  if (data.examples.length === 0) warnings.push("there is no training example");
  else if (config.promptsPerStep > data.examples.length) {
    warnings.push(
      `a batch of ${config.promptsPerStep} prompts holds some of the ${data.examples.length} examples twice`,
    );
  }
  if (data.heldOut.length === 0) warnings.push("there is no held-out example: no evaluation, no best checkpoint");
  if (limits !== undefined && config.groupSize > limits.groupSize) {
    warnings.push(`groupSize ${config.groupSize} is above the engine's ${limits.groupSize}: the run will be refused`);
  }
  return warnings;
}

function meanLength(examples: readonly TrainingExample[]): number {
  if (examples.length === 0) return 0;
  return examples.reduce((sum, example) => sum + example.prompt.length, 0) / examples.length;
}
