import type { ConfiguredMethod } from "../methods/method.ts";
import { methodView } from "../methods/view.ts";
import type { EvaluationItem } from "./datasets.ts";

/** A count with its spread: what a run may take at least, probably, at most. */
export interface Estimate {
  readonly low: number;
  readonly expected: number;
  readonly high: number;
}

export interface EvaluationPlan {
  readonly items: number;
  readonly predictions: number;
  readonly calls: Estimate;
  /** Estimated from characters: no tokenizer is asked. */
  readonly promptTokens: Estimate;
  /** The high end is the limit that is sent; the others are shares of it. */
  readonly completionTokens: Estimate;
  readonly basis: string;
}

/** Characters per token: English prose has about 4, logs with code and JSON fewer, plain prose sometimes 5. */
export const CHARACTERS_PER_TOKEN: Estimate = { low: 5, expected: 4, high: 3 };
/** Shares of the completion limit that answers take. */
const COMPLETION_SHARE: Estimate = { low: 0.05, expected: 0.25, high: 1 };

/** What a run will ask for, from the prompts it would send. Cost follows from it where a price is known. */
export function planEvaluation(
  items: readonly EvaluationItem[],
  method: ConfiguredMethod,
  settings: {
    readonly withReference: boolean;
    readonly epochs?: number | undefined;
    readonly limit?: number | undefined;
  },
): EvaluationPlan {
  const epochs = settings.epochs ?? 1;
  const chosen = items.slice(0, settings.limit);
  const plans = chosen.map((item) => method.plan(methodView(item.trajectory, settings)));
  const each = (value: (end: keyof Estimate) => number): Estimate => ({
    low: Math.round(epochs * value("low")),
    expected: Math.round(epochs * value("expected")),
    high: Math.round(epochs * value("high")),
  });
  const sum = (of: (plan: (typeof plans)[number]) => number): number =>
    plans.reduce((total, plan) => total + of(plan), 0);
  return {
    items: chosen.length,
    predictions: chosen.length * epochs,
    calls: each((end) => sum((plan) => plan.calls[end])),
    promptTokens: each((end) =>
      sum(({ calls, promptCharacters }) => {
        const perCall = calls.expected === 0 ? 0 : promptCharacters / calls.expected;
        return (calls[end] * perCall) / CHARACTERS_PER_TOKEN[end];
      }),
    ),
    completionTokens: each((end) => sum((plan) => plan.completionTokensLimit) * COMPLETION_SHARE[end]),
    basis: "tokens are an estimate: characters / 4, low / 5, high / 3; completions 5%, 25% and all of the limit",
  };
}
