import { tracerReward } from "../src/reward/reward.ts";
import { sameAgent } from "../src/trajectory/agent-name.ts";
import { average } from "./advantages.ts";
import type { TrainingExample } from "./dataset.ts";
import type { RolloutSource, TracerCodec } from "./engines/engine.ts";
import type { Evaluation } from "./metrics.ts";
import { checkCompletions } from "./rollouts.ts";

/** Greedy answers on held-out examples: accuracy of step and agent, and the mean reward. Undefined without examples. */
export async function evaluateHeldOut(
  source: RolloutSource,
  codec: TracerCodec,
  heldOut: readonly TrainingExample[],
  options: { readonly stepsDone: number; readonly lambda: number; readonly sigma: number },
): Promise<Evaluation | undefined> {
  if (heldOut.length === 0) return undefined;
  const request = { prompts: heldOut.map(({ prompt }) => prompt), n: 1, temperature: 0, seed: "greedy" };
  const completions_PG = checkCompletions(source.id, await source.sample(request), request);
  const answers = heldOut.map(({ label }, p) => {
    const reward = tracerReward(codec.decodeCompletion(completions_PG[p]?.[0]?.tokens ?? []), label, options);
    const { prediction } = reward;
    return {
      reward,
      step: prediction?.step === label.step ? 1 : 0,
      agent: prediction !== undefined && sameAgent(prediction.agent, label.agent) ? 1 : 0,
    };
  });
  return {
    stepsDone: options.stepsDone,
    n: answers.length,
    stepAccuracy: average(answers.map(({ step }) => step)),
    agentAccuracy: average(answers.map(({ agent }) => agent)),
    format: average(answers.map(({ reward }) => reward.format)),
    meanReward: average(answers.map(({ reward }) => reward.total)),
  };
}

/** True if the evaluation beats the best so far: by step accuracy, then by mean reward; the earlier one wins a tie. */
export function isBetter(candidate: Evaluation, best: Evaluation | null): boolean {
  if (best === null) return true;
  if (candidate.stepAccuracy !== best.stepAccuracy) return candidate.stepAccuracy > best.stepAccuracy;
  return candidate.meanReward > best.meanReward;
}
