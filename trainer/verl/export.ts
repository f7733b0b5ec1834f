import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { tracerMessages } from "../../src/methods/tracer/tracer.ts";
import { methodView } from "../../src/methods/view.ts";
import { shippedPath } from "../../src/package-root.ts";
import { inconsistencies, isFatal } from "../../src/trajectory/invariants.ts";
import type { Label, Trajectory } from "../../src/trajectory/schema.ts";
import type { TrainConfig } from "../config.ts";
import { splitByGroup, teachingLabel } from "../dataset.ts";
import { type VerlRow, verlParquet } from "./parquet.ts";

export interface VerlExportOptions {
  readonly config: TrainConfig;
  readonly trajectories: readonly Trajectory[];
  readonly heldOutShare: number;
  /** Characters of log in a prompt. */
  readonly logBudget: number;
  readonly model: string;
  readonly out: string;
}

export interface VerlExport {
  readonly train: number;
  readonly heldOut: number;
  /** Records that cannot teach, by reason. */
  readonly refused: Readonly<Record<string, number>>;
  readonly files: readonly string[];
}

const PYTHON = ["tracer_reward.py", "clip_schedule.py"];

/**
 * Writes a job for verl: train.parquet and test.parquet with the tracer's prompts, the reward as `compute_score`, the
 * clip schedule, a configuration without a KL term, and run.sh.
 */
export function exportVerl(options: VerlExportOptions): VerlExport {
  const { config, out } = options;
  const refused: Record<string, number> = {};
  const usable = options.trajectories.flatMap((trajectory) => {
    const label = teachingLabel(trajectory, config.labels);
    const reason = refusal(trajectory, label);
    if (reason === undefined && label !== undefined) return [{ trajectory, label, prompt: [] }];
    refused[reason ?? "no-label"] = (refused[reason ?? "no-label"] ?? 0) + 1;
    return [];
  });
  const split = splitByGroup(usable, { heldOutFraction: options.heldOutShare, seed: config.seed });
  const rows = (examples: typeof usable | typeof split.train, name: string): VerlRow[] =>
    examples.map(({ trajectory, label }, index) => verlRow(trajectory, label, { name, index }, options));
  mkdirSync(out, { recursive: true });
  const files: Readonly<Record<string, string | Uint8Array>> = {
    "train.parquet": verlParquet(rows(split.train, "train")),
    "test.parquet": verlParquet(rows(split.heldOut, "test")),
    ...Object.fromEntries(PYTHON.map((file) => [file, readFileSync(shippedPath("trainer", "verl", file), "utf8")])),
    "config.yaml": stringify(verlConfig(config, options.model)),
    "run.sh": RUN,
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(out, name), content);
  return { train: split.train.length, heldOut: split.heldOut.length, refused, files: Object.keys(files) };
}

function refusal(trajectory: Trajectory, label: Label | undefined): string | undefined {
  if (trajectory.outcome.success) return "run-succeeded";
  if (label === undefined) return "no-label";
  return inconsistencies({ ...trajectory, labels: [label] }).some(isFatal) ? "inconsistent" : undefined;
}

function verlRow(
  trajectory: Trajectory,
  label: Label,
  place: { readonly name: string; readonly index: number },
  { config, logBudget }: VerlExportOptions,
): VerlRow {
  const { messages } = tracerMessages(methodView(trajectory, config), logBudget);
  return {
    data_source: "rootstep",
    prompt: messages.map(({ role, content }) => ({ role, content })),
    ability: "failure-attribution",
    reward_model: { style: "rule", ground_truth: `${label.agent} | ${label.step}` },
    extra_info: { split: place.name, index: place.index, id: trajectory.id },
  };
}

/** verl's settings for the run that the configuration describes (§4.2, §5.1): GRPO, no KL term, untruncated sampling. */
export function verlConfig(config: TrainConfig, model: string): Readonly<Record<string, unknown>> {
  const limits = config.engine.kind === "tinker" ? config.engine : { maxPrompt: 24_576, maxCompletion: 4_096 };
  return {
    algorithm: {
      adv_estimator: "grpo",
      norm_adv_by_std_in_grpo: config.normalizeStd,
      use_kl_in_reward: false,
    },
    data: {
      train_files: "train.parquet",
      val_files: "test.parquet",
      train_batch_size: config.promptsPerStep,
      max_prompt_length: limits.maxPrompt,
      max_response_length: limits.maxCompletion,
      truncation: "error",
      seed: config.seed,
    },
    actor_rollout_ref: {
      model: { path: model },
      actor: {
        use_kl_loss: false,
        entropy_coeff: 0,
        clip_ratio: config.B0,
        clip_ratio_low: config.B0,
        clip_ratio_high: config.B0,
        ppo_mini_batch_size: Math.ceil(config.promptsPerStep / config.minibatches),
        ppo_epochs: config.epochsPerBatch,
        loss_agg_mode: LOSS_AGGREGATION[config.aggregation],
        grad_clip: config.optimizer.maxGradNorm,
        optim: { lr: config.learningRate, lr_warmup_steps: config.warmup, weight_decay: config.optimizer.weightDecay },
      },
      rollout: {
        name: "vllm",
        n: config.groupSize,
        temperature: config.temperature,
        top_p: config.topP,
        top_k: -1,
        calculate_log_probs: true,
      },
    },
    custom_reward_function: { path: "tracer_reward.py", name: "compute_score" },
    trainer: { total_training_steps: config.steps, save_freq: config.checkpointEvery, test_freq: config.evalEvery },
  };
}

/** verl's names for how token losses become one number; its token-sum divides by a constant, which Adam does not see. */
const LOSS_AGGREGATION: Readonly<Record<TrainConfig["aggregation"], string>> = {
  "token-mean": "token-mean",
  "token-sum": "seq-mean-token-sum",
  "sequence-mean": "seq-mean-token-mean",
};

const RUN = `#!/usr/bin/env bash
# Runs this job with verl. The clip is fixed at B0 unless clip_schedule.py is installed in the actor's process: see there.
set -euo pipefail
cd "$(dirname "$0")"
exec python3 -m verl.trainer.main_ppo --config-path "$PWD" --config-name config "$@"
`;
