import { z } from "zod";
import { RootstepError } from "../src/errors.ts";
import { clipBound, learningRateAt } from "./clip-schedule.ts";
import type { TrainConfig } from "./config.ts";
import type { TrainingExample } from "./dataset.ts";
import type { RolloutSource, TrainingEngine } from "./engines/engine.ts";
import { evaluateHeldOut, isBetter } from "./held-out.ts";
import { type Evaluation, evaluationSchema, type Metric, type RatioStats, type Timing } from "./metrics.ts";
import { type Logprobs_PGT, updatePolicy } from "./policy-update.ts";
import { compareAtUnchangedWeights, engineLogprobs, requireMatchingRatio, samplerLogprobs } from "./ratio-check.ts";
import { type HeldBatch, openRolloutPipeline, type RolloutPipeline } from "./rollout-pipeline.ts";
import type { RolloutGroup } from "./rollouts.ts";
import { isSyncPoint, staleness } from "./sampling-schedule.ts";
import { stepMetric } from "./step-metric.ts";

/** All that step s + 1 needs besides the engine's state: random draws come from streams named by seed and step. */
export const loopStateSchema = z.strictObject({
  /** Steps done; the next one is s = step. */
  step: z.number().int().nonnegative(),
  /** Examples drawn since the run began. */
  position: z.number().int().nonnegative(),
  /** Optimiser steps taken. */
  policyVersion: z.number().int().nonnegative(),
  best: evaluationSchema.nullable(),
  /** Steps in a row whose mean reward counts as collapsed. */
  collapsedSteps: z.number().int().nonnegative(),
});
export type LoopState = z.infer<typeof loopStateSchema>;

export type CheckpointReason = "start" | "scheduled" | "best" | "final" | "interrupted";

export interface TrainingSetup {
  readonly config: TrainConfig;
  readonly engine: TrainingEngine;
  /** What samples the rollouts: the engine itself, or a server that `sync` gives the engine's weights. */
  readonly rollouts: RolloutSource;
  readonly examples: readonly TrainingExample[];
  readonly heldOut: readonly TrainingExample[];
  /** Called before the first rollout and after updates, at sync points: brings the sampler to that version of the policy. */
  readonly sync?: (policyVersion: number) => Promise<void>;
  readonly signal?: AbortSignal;
  /** Milliseconds of a steady clock, for the timings. */
  readonly now: () => number;
}

/** What the loop hands out as it goes; awaited, so that a record is on disk before the next step begins. */
export interface LoopHooks {
  readonly onMetric: (metric: Metric, timing: Timing) => Promise<void>;
  readonly onEvaluation: (evaluation: Evaluation) => Promise<void>;
  /** @param held batches of later steps that are sampled already, by a policy that a resumed run does not have */
  readonly onCheckpoint: (state: LoopState, reason: CheckpointReason, held: readonly HeldBatch[]) => Promise<void>;
  /** Sampler against trainer on the first batch of this process that the engine's own weights sampled. */
  readonly onRatioCheck: (stats: RatioStats) => Promise<void> | undefined;
}

/** What a checkpoint gives back to the loop. */
export interface ResumedLoop {
  readonly state: LoopState;
  readonly held: readonly HeldBatch[];
}

type Running = TrainingSetup & { readonly pipeline: RolloutPipeline };

/**
 * GRPO without the KL term (§4.2): sample a group of answers per failed run, reward them, compare each with its group,
 * and raise the better ones within a clip that narrows as training goes on.
 *
 * @param resumed what a checkpoint holds; undefined for a fresh run
 * @throws RootstepError RATIO_MISMATCH, ENGINE_NAN, ENGINE_FAILED, REWARD_COLLAPSE; INTERRUPTED after a checkpoint
 */
export async function grpo(
  setup: TrainingSetup,
  resumed: ResumedLoop | undefined,
  hooks: LoopHooks,
): Promise<LoopState> {
  await setup.sync?.(resumed?.state.policyVersion ?? 0);
  const state = resumed?.state ?? (await firstState(setup, hooks));
  stopIfInterrupted(setup, state);
  const { config, engine, examples } = setup;
  const start = { position: state.position, held: resumed?.held ?? [] };
  const pipeline = openRolloutPipeline({ config, codec: engine.codec, examples }, start);
  try {
    return await steps({ ...setup, pipeline }, state, hooks);
  } finally {
    // A step that failed leaves nothing running behind.
    await pipeline.stop();
  }
}

async function steps(setup: Running, first: LoopState, hooks: LoopHooks): Promise<LoopState> {
  const { config, engine, pipeline } = setup;
  let state = first;
  let served = first.policyVersion;
  let ratioChecked = false;
  while (state.step < config.steps) {
    const s = state.step;
    const started = setup.now();
    const clip = clipBound(s, config.steps, config.B0);
    const learningRate = learningRateAt(s, config.steps, config);

    if (isSyncPoint(config, s)) {
      pipeline.begin({ source: await presentSampler(setup), stepsDone: s, policyVersion: state.policyVersion });
    }
    const batch = await pipeline.take(s);
    const sampled = setup.now();
    const fresh = batch.sampledAfter === s;
    const old = await oldLogprobs(setup, batch.trained, { s, check: !ratioChecked && fresh });
    if (!ratioChecked && old.stats !== undefined) {
      await hooks.onRatioCheck(old.stats);
      ratioChecked = true;
    }
    const groups = { groups_P: batch.trained, oldLogprobs_PGT: old.logprobs_PGT };
    const update = await updatePolicy(engine, config, groups, { s, clip, learningRate });
    const policyVersion = state.policyVersion + update.updates;
    const drainBegan = setup.now();
    if (isSyncPoint(config, s + 1)) await pipeline.drain();
    const drainMs = setup.now() - drainBegan;
    if (isSyncPoint(config, s + 1) && policyVersion > served) {
      await setup.sync?.(policyVersion);
      served = policyVersion;
    }

    const samplerRatio = recomputes(setup) ? (old.stats ?? null) : null;
    const metric = stepMetric({ config, s, clip, learningRate, batch, update, state, samplerRatio });
    const totalMs = setup.now() - started;
    const sampleMs = sampled - started + drainMs;
    const timing = { step: s, sampleMs, updateMs: totalMs - sampleMs, totalMs };
    await hooks.onMetric(metric, timing);

    const collapsedSteps = metric.reward.mean <= config.stop.collapseReward ? state.collapsedSteps + 1 : 0;
    state = { ...state, step: s + 1, position: batch.position, policyVersion, collapsedSteps };
    stopIfCollapsed(state, config);
    state = await finishStep(setup, state, hooks);
    stopIfInterrupted(setup, state);
  }
  return state;
}

/** Evaluates and saves the policy as it is before training: it may turn out to be the best one. */
async function firstState(setup: TrainingSetup, hooks: LoopHooks): Promise<LoopState> {
  const blank: LoopState = { step: 0, position: 0, policyVersion: 0, best: null, collapsedSteps: 0 };
  const state = { ...blank, best: (await evaluate(setup, 0, hooks)) ?? null };
  await hooks.onCheckpoint(state, "start", []);
  return state;
}

/** What samples from the weights as they are now, whatever the engine does meanwhile. */
async function presentSampler({ config, engine, rollouts }: TrainingSetup): Promise<RolloutSource> {
  if (staleness(config) === 0 || rollouts !== engine || engine.frozenSampler === undefined) return rollouts;
  return engine.frozenSampler();
}

/** Evaluation and checkpoint after a step, where one is due or the run was interrupted. */
async function finishStep(setup: Running, state: LoopState, hooks: LoopHooks): Promise<LoopState> {
  const { config, pipeline } = setup;
  const isLast = state.step === config.steps;
  const evaluation =
    isLast || state.step % config.evalEvery === 0 ? await evaluate(setup, state.step, hooks) : undefined;
  const isBest = evaluation !== undefined && isBetter(evaluation, state.best);
  const next = isBest ? { ...state, best: evaluation } : state;
  const reason = checkpointReason({ isLast, isBest, isDue: next.step % config.checkpointEvery === 0 }, setup.signal);
  // The policy that sampled what is in flight is gone after a stop: the checkpoint holds its samples.
  if (reason !== undefined) await hooks.onCheckpoint(next, reason, await pipeline.held(next.step));
  return next;
}

function checkpointReason(
  { isLast, isDue, isBest }: { readonly isLast: boolean; readonly isDue: boolean; readonly isBest: boolean },
  signal: AbortSignal | undefined,
): CheckpointReason | undefined {
  if (isLast) return "final";
  if (isDue) return "scheduled";
  if (isBest) return "best";
  return signal?.aborted === true ? "interrupted" : undefined;
}

/** Stops where a checkpoint of the state has just been written or read. */
function stopIfInterrupted({ config, signal }: TrainingSetup, state: LoopState): void {
  if (signal?.aborted !== true || state.step >= config.steps) return;
  throw new RootstepError("INTERRUPTED", { what: `training stopped after ${state.step} of ${config.steps} steps` });
}

async function evaluate(setup: TrainingSetup, stepsDone: number, hooks: LoopHooks): Promise<Evaluation | undefined> {
  const { config, engine, rollouts, heldOut } = setup;
  const evaluation = await evaluateHeldOut(rollouts, engine.codec, heldOut, { ...config, stepsDone });
  if (evaluation !== undefined) await hooks.onEvaluation(evaluation);
  return evaluation;
}

/**
 * True where old log-probabilities come from the engine: by setting, or because another program sampled. Never with overlap: the
 * ratio needs the policy that sampled (the behaviour policy), and the engine has moved on from it by then.
 */
function recomputes({ config, engine, rollouts }: TrainingSetup): boolean {
  if (staleness(config) > 0) return false;
  switch (config.oldLogprobs) {
    case "auto":
      return rollouts.id !== engine.id;
    case "engine":
      return true;
    case "sampler":
      return false;
  }
}

/** Old log-probabilities of a batch and, where they were computed on both sides, how far the two agree. */
async function oldLogprobs(
  setup: TrainingSetup,
  groups_P: readonly RolloutGroup[],
  step: { readonly s: number; readonly check: boolean },
): Promise<{ readonly logprobs_PGT: Logprobs_PGT; readonly stats: RatioStats | undefined }> {
  const sampled_PGT = samplerLogprobs(groups_P);
  if (groups_P.length === 0 || !(step.check || recomputes(setup)))
    return { logprobs_PGT: sampled_PGT, stats: undefined };
  const where = `step ${step.s}, sampler ${setup.rollouts.id}, engine ${setup.engine.id}`;
  const recomputed_PGT = await engineLogprobs(setup.engine, groups_P);
  const stats = compareAtUnchangedWeights(groups_P, recomputed_PGT, where);
  if (step.check && stats !== undefined) requireMatchingRatio(stats, setup.config.ratioTolerance, where);
  return { logprobs_PGT: recomputes(setup) ? recomputed_PGT : sampled_PGT, stats };
}

function stopIfCollapsed(state: LoopState, config: TrainConfig): void {
  if (state.collapsedSteps < config.stop.collapseSteps) return;
  const best = state.best === null ? "" : `; the best policy was that after step ${state.best.stepsDone}`;
  throw new RootstepError("REWARD_COLLAPSE", {
    what: `mean reward was at most ${config.stop.collapseReward} for ${state.collapsedSteps} steps in a row${best}`,
    where: `step ${state.step - 1}`,
  });
}
