import type { EvaluationItem } from "./datasets.ts";
import type { Prediction } from "./prediction.ts";
import { officialCompat, strict, withinSteps } from "./scorers.ts";

/** The measures of a prediction, each right or wrong. */
export const MEASURES = [
  "step",
  "agent",
  "both",
  "within1",
  "within2",
  "within3",
  "compatStep",
  "compatAgent",
  "compatBoth",
] as const;
export type Measure = (typeof MEASURES)[number];

/** 1 where right, 0 where wrong, in the order of MEASURES; then 1 where the output could not be read in full. */
export type Hits = readonly number[];

/** Position of the last column of `Hits`. */
export const PARSE_FAILED = MEASURES.length;

type Answer = Pick<Prediction, "agent" | "step" | "parseFailure">;

/**
 * Scores answers, each different one of an item once: runs of many epochs repeat themselves, and folding names costs more
 * than looking up.
 */
export function hitScorer(): (item: EvaluationItem, answer: Answer) => Hits {
  const read = answerMap();
  const unread = answerMap();
  return (item, answer) => {
    const known = (answer.parseFailure === undefined ? read : unread)(item, answer.agent);
    let hits = known.get(answer.step);
    if (hits === undefined) {
      hits = hitsOf(answer, item.label);
      known.set(answer.step, hits);
    }
    return hits;
  };
}

/** Hits by step, of each item and agent answered. */
function answerMap(): (item: EvaluationItem, agent: string | null) => Map<number | null, Hits> {
  const byItem = new Map<EvaluationItem, Map<string | null, Map<number | null, Hits>>>();
  return (item, agent) => {
    const byAgent = byItem.get(item) ?? new Map<string | null, Map<number | null, Hits>>();
    byItem.set(item, byAgent);
    const bySteps = byAgent.get(agent) ?? new Map<number | null, Hits>();
    byAgent.set(agent, bySteps);
    return bySteps;
  };
}

function hitsOf(answer: Answer, gold: EvaluationItem["label"]): Hits {
  const right: Record<Measure, boolean> = {
    step: strict.step(answer, gold),
    agent: strict.agent(answer, gold),
    both: strict.step(answer, gold) && strict.agent(answer, gold),
    within1: withinSteps(answer, gold, 1),
    within2: withinSteps(answer, gold, 2),
    within3: withinSteps(answer, gold, 3),
    compatStep: officialCompat.step(answer, gold),
    compatAgent: officialCompat.agent(answer, gold),
    compatBoth: officialCompat.step(answer, gold) && officialCompat.agent(answer, gold),
  };
  return [...MEASURES.map((measure) => (right[measure] ? 1 : 0)), answer.parseFailure === undefined ? 0 : 1];
}
