import type { Prices } from "../models/budget.ts";
import type { Prediction } from "./prediction.ts";

/** What predictions took. */
export interface Cost {
  readonly predictions: number;
  readonly calls: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Predictions with calls whose server reported no usage: the token sums and the money lack them. */
  readonly withoutUsage: number;
  /** In the currency of the prices; null where no price is known and calls were made. */
  readonly money: number | null;
  /** Sum of the predictions' latencies; with concurrency the run was shorter. */
  readonly seconds: number;
}

export function costOf(predictions: readonly Prediction[], prices: Prices | undefined): Cost {
  let [calls, promptTokens, completionTokens, withoutUsage, milliseconds] = [0, 0, 0, 0, 0];
  for (const prediction of predictions) {
    calls += prediction.calls;
    promptTokens += prediction.usage?.promptTokens ?? 0;
    completionTokens += prediction.usage?.completionTokens ?? 0;
    if (prediction.calls > 0 && prediction.usage === undefined) withoutUsage += 1;
    milliseconds += prediction.latencyMs;
  }
  const price = prices ?? (calls === 0 ? { prompt: 0, completion: 0 } : undefined);
  return {
    predictions: predictions.length,
    calls,
    promptTokens,
    completionTokens,
    withoutUsage,
    money: price === undefined ? null : (promptTokens * price.prompt + completionTokens * price.completion) / 1_000_000,
    seconds: milliseconds / 1000,
  };
}

/** What a cost is compared by. */
export const COST_AXES = ["money", "tokens", "calls"] as const;
export type CostAxis = (typeof COST_AXES)[number];

/** Cost of one prediction on an axis; null where it is not known for every prediction. */
export function costPerPrediction(cost: Cost, axis: CostAxis): number | null {
  if (cost.predictions === 0) return null;
  switch (axis) {
    case "money":
      return cost.money === null || cost.withoutUsage > 0 ? null : cost.money / cost.predictions;
    case "tokens":
      return cost.withoutUsage > 0 ? null : (cost.promptTokens + cost.completionTokens) / cost.predictions;
    case "calls":
      return cost.calls / cost.predictions;
  }
}

/** The first axis on which every cost is known: money, else tokens, else calls. */
export function commonAxis(costs: readonly Cost[]): CostAxis {
  const known = (axis: CostAxis): boolean => costs.every((cost) => costPerPrediction(cost, axis) !== null);
  return COST_AXES.find(known) ?? "calls";
}

/**
 * The points of the cost–accuracy frontier: those that no other point matches or beats in both respects while beating it
 * in one. Points without a cost or accuracy are on no frontier.
 */
export function onFrontier(
  points: readonly { readonly cost: number | null; readonly accuracy: number | null }[],
): boolean[] {
  return points.map(({ cost, accuracy }) => {
    if (cost === null || accuracy === null) return false;
    return !points.some(
      (other) =>
        other.cost !== null &&
        other.accuracy !== null &&
        other.cost <= cost &&
        other.accuracy >= accuracy &&
        (other.cost < cost || other.accuracy > accuracy),
    );
  });
}
