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

/**
 * 1 where right, 0 where wrong, in the order of MEASURES; then 1 where the output could not be read in full, and 1 where it was
 * read and named no step.
 */
export type Hits = readonly number[];

/** Positions of the last columns of `Hits`. */
export const PARSE_FAILED = MEASURES.length;
export const NO_STEP_NAMED = MEASURES.length + 1;
/** Columns of `Hits`. */
export const HIT_COLUMNS = MEASURES.length + 2;

type Answer = Pick<Prediction, "agent" | "step" | "parseFailure" | "noStepNamed">;

/** Scores answers by both scorers; names are compared once for each pair, because folding them costs more than looking up. */
export function hitScorer(): (gold: EvaluationItem["label"], answer: Answer) => Hits {
  const known = new Map<string | null, Map<string, { readonly strict: boolean; readonly compat: boolean }>>();
  return (gold, answer) => {
    let byGold = known.get(answer.agent);
    if (byGold === undefined) {
      byGold = new Map();
      known.set(answer.agent, byGold);
    }
    let agent = byGold.get(gold.agent);
    if (agent === undefined) {
      agent = { strict: strict.agent(answer, gold), compat: officialCompat.agent(answer, gold) };
      byGold.set(gold.agent, agent);
    }
    const step = strict.step(answer, gold);
    const compatStep = officialCompat.step(answer, gold);
    // In the order of MEASURES.
    return [
      Number(step),
      Number(agent.strict),
      Number(step && agent.strict),
      Number(withinSteps(answer, gold, 1)),
      Number(withinSteps(answer, gold, 2)),
      Number(withinSteps(answer, gold, 3)),
      Number(compatStep),
      Number(agent.compat),
      Number(compatStep && agent.compat),
      Number(answer.parseFailure !== undefined),
      Number(answer.noStepNamed === true),
    ];
  };
}
