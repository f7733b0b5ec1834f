import { z } from "zod";
import { RootstepError } from "../src/errors.ts";
import type { TrainConfig } from "./config.ts";
import type { TrainingExample } from "./dataset.ts";
import type { RolloutSource, TracerCodec } from "./engines/engine.ts";
import { collectRollouts, type RolloutBatch } from "./rollouts.ts";
import { batchesSampledAt, staleness } from "./sampling-schedule.ts";

const completionSchema = z.strictObject({
  tokens: z.array(z.number()),
  logprobs: z.array(z.number()),
  finishReason: z.enum(["stop", "length"]),
  policyVersion: z.number(),
});

/** A batch that was sampled and not yet trained on, as a checkpoint holds it: what its policy can sample no more. */
const heldBatchSchema = z.strictObject({
  step: z.number().int().nonnegative(),
  sampledAfter: z.number().int().nonnegative(),
  policyVersion: z.number().int().nonnegative(),
  /** What the sampler answered, by the name of the random stream it was asked with. */
  answers: z.record(z.string(), z.array(z.array(completionSchema))),
});
export const heldBatchesSchema = z.array(heldBatchSchema);
export type HeldBatch = z.infer<typeof heldBatchSchema>;

/** The batch of a step with the policy that sampled it. */
export interface SampledBatch extends RolloutBatch {
  /** Steps behind that policy. */
  readonly sampledAfter: number;
  /** Optimiser steps behind that policy. */
  readonly policyVersion: number;
}

/** The sampler as it is from one sync point to the next. */
export interface SamplerWindow {
  readonly source: RolloutSource;
  /** Steps done at the sync point. */
  readonly stepsDone: number;
  readonly policyVersion: number;
}

export interface RolloutPipeline {
  /** Begins to sample the batches that the policy at a sync point samples; the work goes on while steps update. */
  begin(window: SamplerWindow): void;
  /** The batch of a step. @throws what sampling it threw */
  take(step: number): Promise<SampledBatch>;
  /** Waits until nothing is in flight: before the sampler's weights change. @throws what sampling threw */
  drain(): Promise<void>;
  /** What a checkpoint must hold: batches of the step and later ones. Waits until nothing is in flight. */
  held(step: number): Promise<readonly HeldBatch[]>;
  /** Ends what is in flight; its failure is of no more interest. */
  stop(): Promise<void>;
}

export interface PipelineSetup {
  readonly config: TrainConfig;
  readonly codec: TracerCodec;
  readonly examples: readonly TrainingExample[];
}

interface Entry {
  readonly batch: Promise<SampledBatch>;
  readonly held: HeldBatch;
}

/**
 * Samples batches one after the other, ahead of their updates. Each batch needs the one before it: where further prompts
 * replace dead groups, the data order goes on from where that one ended.
 *
 * @param start examples drawn before the first batch, and batches that a checkpoint held
 */
export function openRolloutPipeline(
  setup: PipelineSetup,
  start: { readonly position: number; readonly held: readonly HeldBatch[] },
): RolloutPipeline {
  const entries = new Map<number, Entry>();
  const stopped = new AbortController();
  let last: Promise<{ readonly position: number }> = Promise.resolve({ position: start.position });

  function enqueue(held: HeldBatch, source: RolloutSource): void {
    const { step, sampledAfter, policyVersion } = held;
    const before = last;
    const batch = before.then(async ({ position }): Promise<SampledBatch> => {
      const rolloutSetup = { ...setup, source, policyVersion, signal: stopped.signal };
      return { ...(await collectRollouts(rolloutSetup, step, position)), sampledAfter, policyVersion };
    });
    // Whoever takes the batch hears of its failure; until then nobody does.
    batch.catch(() => {});
    last = batch;
    entries.set(step, { batch, held });
  }

  for (const held of start.held) enqueue(held, recorded(held));
  return {
    begin({ source, stepsDone, policyVersion }) {
      const { from, to } = batchesSampledAt(setup.config, stepsDone);
      for (let step = from; step < to; step++) {
        if (entries.has(step)) continue;
        const held: HeldBatch = { step, sampledAfter: stepsDone, policyVersion, answers: {} };
        // Without overlap a batch never outlives its step: no checkpoint holds it.
        enqueue(held, staleness(setup.config) === 0 ? source : recording(source, held));
      }
    },
    async take(step) {
      const entry = entries.get(step);
      if (entry === undefined) throw new RootstepError("INTERNAL", { what: `no batch was begun for step ${step}` });
      const batch = await entry.batch;
      entries.delete(step);
      return batch;
    },
    async drain() {
      await last;
    },
    async held(step) {
      await last;
      return [...entries.values()].map(({ held }) => held).filter((held) => held.step >= step);
    },
    async stop() {
      stopped.abort(new RootstepError("INTERRUPTED", { what: "the run ended while rollouts were in flight" }));
      await last.catch(() => {});
    },
  };
}

/** Keeps what the sampler answers. */
function recording(source: RolloutSource, held: HeldBatch): RolloutSource {
  return {
    id: source.id,
    async sample(request) {
      const completions_PG = await source.sample(request);
      held.answers[request.seed] = completions_PG.map((group) =>
        group.map(({ tokens, logprobs, finishReason, policyVersion = held.policyVersion }) => {
          return { tokens: [...tokens], logprobs: [...logprobs], finishReason, policyVersion };
        }),
      );
      return completions_PG;
    },
  };
}

/** Gives again what a checkpoint held. */
function recorded(held: HeldBatch): RolloutSource {
  return {
    id: "checkpoint",
    async sample({ seed }) {
      const answer = held.answers[seed];
      if (answer !== undefined) return answer;
      const what = `the checkpoint does not hold the rollouts of step ${held.step} that it counts on`;
      throw new RootstepError("CHECKPOINT_CORRUPT", { what, where: `stream ${seed}` });
    },
  };
}
