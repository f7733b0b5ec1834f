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
import { collectRollouts, type RolloutGroup } from "./rollouts.ts";
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
  /** Called before the first rollout and after every update: brings the sampler to that version of the policy. */
  readonly sync?: (policyVersion: number) => Promise<void>;
  readonly signal?: AbortSignal;
  /** Milliseconds of a steady clock, for the timings. */
  readonly now: () => number;
}

/** What the loop hands out as it goes; awaited, so that a record is on disk before the next step begins. */
export interface LoopHooks {
  readonly onMetric: (metric: Metric, timing: Timing) => Promise<void>;
  readonly onEvaluation: (evaluation: Evaluation) => Promise<void>;
  readonly onCheckpoint: (state: LoopState, reason: CheckpointReason) => Promise<void>;
  /** Sampler against trainer on the first batch of this process. */
  readonly onRatioCheck: (stats: RatioStats) => void;
}

/**
 * GRPO without the KL term (§4.2): sample a group of answers per failed run, reward them, compare each with its group,
 * and raise the better ones within a clip that narrows as training goes on.
 *
 * @param resumed the state a checkpoint holds; undefined for a fresh run
 * @throws RootstepError RATIO_MISMATCH, ENGINE_NAN, ENGINE_FAILED, REWARD_COLLAPSE; INTERRUPTED after a checkpoint
 */
export async function grpo(setup: TrainingSetup, resumed: LoopState | undefined, hooks: LoopHooks): Promise<LoopState> {
  const { config, engine } = setup;
  await setup.sync?.(resumed?.policyVersion ?? 0);
  let state = resumed ?? (await firstState(setup, hooks));
  let ratioChecked = false;
  stopIfInterrupted(setup, state);
  while (state.step < config.steps) {
    const s = state.step;
    const started = setup.now();
    const clip = clipBound(s, config.steps, config.B0);
    const learningRate = learningRateAt(s, config.steps, config);

    const batch = await collectRollouts({ ...setup, source: setup.rollouts, codec: engine.codec }, s, state.position);
    const sampled = setup.now();
    const old = await oldLogprobs(setup, batch.trained, { s, check: !ratioChecked });
    if (!ratioChecked && old.stats !== undefined) {
      hooks.onRatioCheck(old.stats);
      ratioChecked = true;
    }
    const groups = { groups_P: batch.trained, oldLogprobs_PGT: old.logprobs_PGT };
    const update = await updatePolicy(engine, config, groups, { s, clip, learningRate });
    const policyVersion = state.policyVersion + update.updates;
    if (update.updates > 0) await setup.sync?.(policyVersion);

    const samplerRatio = recomputes(setup) ? (old.stats ?? null) : null;
    const metric = stepMetric({ config, s, clip, learningRate, batch, update, state, samplerRatio });
    const done = setup.now();
    const timing = { step: s, sampleMs: sampled - started, updateMs: done - sampled, totalMs: done - started };
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
  await hooks.onCheckpoint(state, "start");
  return state;
}

/** Evaluation and checkpoint after a step, where one is due or the run was interrupted. */
async function finishStep(setup: TrainingSetup, state: LoopState, hooks: LoopHooks): Promise<LoopState> {
  const { config } = setup;
  const isLast = state.step === config.steps;
  const evaluation =
    isLast || state.step % config.evalEvery === 0 ? await evaluate(setup, state.step, hooks) : undefined;
  const isBest = evaluation !== undefined && isBetter(evaluation, state.best);
  const next = isBest ? { ...state, best: evaluation } : state;
  if (isLast) await hooks.onCheckpoint(next, "final");
  else if (next.step % config.checkpointEvery === 0) await hooks.onCheckpoint(next, "scheduled");
  else if (isBest) await hooks.onCheckpoint(next, "best");
  else if (setup.signal?.aborted === true) await hooks.onCheckpoint(next, "interrupted");
  return next;
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

/** True where old log-probabilities come from the engine: by setting, or because another program sampled. */
function recomputes({ config, engine, rollouts }: TrainingSetup): boolean {
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
