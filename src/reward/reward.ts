import { z } from "zod";
import { sameAgent } from "../trajectory/agent-name.ts";
import { type GateReason, parseTracerOutput } from "./format-gate.ts";

export const rewardSettingsSchema = z.strictObject({
  lambda: z.number().min(0).max(1).default(0.5).describe("share of the step reward; the rest is the agent reward"),
  sigma: z.number().positive().default(1).describe("width of the step kernel, in steps"),
});
/** λ and σ of §4.2; the paper sets .5 and 1 (§5.1). */
export type RewardSettings = z.infer<typeof rewardSettingsSchema>;

export const PAPER_REWARD: RewardSettings = { lambda: 0.5, sigma: 1 };

/** The reward of one output with its parts, each in [0, 1]. */
export interface TracerReward {
  /** R = I_format · (λ·r_step + (1−λ)·r_agent). */
  readonly total: number;
  readonly format: 0 | 1;
  /** r_step; 0 where the gate is shut. */
  readonly step: number;
  /** r_agent; 0 where the gate is shut. */
  readonly agent: 0 | 1;
  readonly prediction?: { readonly agent: string; readonly step: number };
  /** Why the gate is shut. */
  readonly reason?: GateReason;
}

/** r_step = exp(−(t̂−t*)² / 2σ²) (§4.2): 1 at the label, falling with the distance in steps. */
export function stepKernel(predicted: number, label: number, sigma = PAPER_REWARD.sigma): number {
  const distance = (predicted - label) / sigma;
  return Math.exp(-(distance * distance) / 2);
}

/** r_agent = 1[î = i*] (§4.2), names compared in normalised form. */
export function agentReward(predicted: string, label: string): 0 | 1 {
  return sameAgent(predicted, label) ? 1 : 0;
}

/** The format-gated reward of §4.2 for one output of the tracer. */
export function tracerReward(
  text: string,
  label: { readonly agent: string; readonly step: number },
  settings: RewardSettings = PAPER_REWARD,
): TracerReward {
  const output = parseTracerOutput(text);
  if (!output.ok) return { total: 0, format: 0, step: 0, agent: 0, reason: output.reason };
  const step = stepKernel(output.step, label.step, settings.sigma);
  const agent = agentReward(output.agent, label.agent);
  const total = settings.lambda * step + (1 - settings.lambda) * agent;
  return { total, format: 1, step, agent, prediction: { agent: output.agent, step: output.step } };
}
