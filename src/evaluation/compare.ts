import { type BootstrapSettings, type ClusteredMean, pairedBootstrap } from "./bootstrap.ts";
import type { EvaluationItem } from "./datasets.ts";
import { latestPredictions, type Prediction } from "./prediction.ts";
import { strict } from "./scorers.ts";
import { type McNemarResult, mcNemarExact } from "./statistics.ts";

export interface PairedComparison {
  readonly column: "agent" | "step";
  /** Predictions (log × epoch) that both runs have; nothing else is compared. */
  readonly pairs: number;
  /** Strict accuracy over these pairs, in [0, 1]. */
  readonly first: number;
  readonly second: number;
  /** Exact McNemar; null with several epochs, whose pairs are not independent. */
  readonly mcNemar: McNemarResult | null;
  /** Mean of first − second with a bootstrap clustered by question. */
  readonly difference: ClusteredMean;
}

/**
 * Compares two runs on the logs they share, by the strict scorer.
 *
 * @returns nothing to compare: undefined
 */
export function comparePaired(
  items: readonly EvaluationItem[],
  first: readonly Prediction[],
  second: readonly Prediction[],
  column: PairedComparison["column"],
  settings: BootstrapSettings,
): PairedComparison | undefined {
  const byId = new Map(items.map((item) => [item.id, item]));
  const others = latestPredictions(second);
  const pairs = [...latestPredictions(first)].flatMap(([key, a]) => {
    const item = byId.get(a.itemId);
    const b = others.get(key);
    if (item === undefined || b === undefined) return [];
    return [{ first: strict[column](a, item.label), second: strict[column](b, item.label), item, epoch: a.epoch }];
  });
  if (pairs.length === 0) return undefined;
  const share = (of: "first" | "second"): number => pairs.filter((pair) => pair[of]).length / pairs.length;
  const difference = pairedBootstrap(
    pairs.map((pair) => ({ first: Number(pair.first), second: Number(pair.second), cluster: pair.item.groupId })),
    settings,
  );
  const single = new Set(pairs.map((pair) => pair.item.id)).size === pairs.length;
  return {
    column,
    pairs: pairs.length,
    first: share("first"),
    second: share("second"),
    mcNemar: single ? mcNemarExact(pairs) : null,
    difference,
  };
}
