import type { EvaluationItem } from "../../src/evaluation/datasets.ts";
import type { Prediction } from "../../src/evaluation/prediction.ts";

/** A prediction of one call. */
export function prediction(
  itemId: string,
  agent: string | null,
  step: number | null,
  over: Partial<Prediction> = {},
): Prediction {
  return {
    itemId,
    epoch: 0,
    method: "m",
    agent,
    step,
    evidence: [],
    parsePath: "json",
    calls: 1,
    usage: { promptTokens: 100, completionTokens: 10 },
    latencyMs: 500,
    ...over,
  };
}

/** Right on the first `right` items, the first agent and step 0 elsewhere. */
export function rightOnFirst(items: readonly EvaluationItem[], right: number, over: Partial<Prediction> = {}) {
  return items.map(({ id, label, trajectory }, i) =>
    i < right
      ? prediction(id, label.agent, label.step, over)
      : prediction(id, `not ${label.agent}`, trajectory.steps.length + 99, over),
  );
}
