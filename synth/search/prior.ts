import { RootstepError } from "../../src/errors.ts";

/** Before any rerun: that no correction of this run has an effect. */
const NOTHING_HELPS = 0.05;

/** Share of the belief that stays uniform whatever the prior says, so that a bad one costs reruns, not correctness. */
const UNIFORM = 0.5;

/**
 * The prior over t* from which a search starts: T + 1 probabilities, "no correction helps" last.
 *
 * @param weights one weight ≥ 0 per step from an attribution method; absent: all steps alike
 * @throws RootstepError CONFIG_INVALID if they do not fit a run of that length
 */
export function startingPrior(length: number, weights?: readonly number[]): number[] {
  const uniform = 1 / length;
  const total = weights?.reduce((sum, weight) => sum + weight, 0) ?? 0;
  if (weights !== undefined) requireFit(weights, length, total);
  return [
    ...Array.from({ length }, (_, step) => {
      const stated = weights === undefined ? uniform : (weights[step] ?? 0) / total;
      return (1 - NOTHING_HELPS) * (UNIFORM * uniform + (1 - UNIFORM) * stated);
    }),
    NOTHING_HELPS,
  ];
}

function requireFit(weights: readonly number[], length: number, total: number): void {
  const fits = weights.length === length && weights.every((weight) => weight >= 0) && total > 0 && total < Infinity;
  if (fits) return;
  throw new RootstepError("CONFIG_INVALID", {
    what: `the prior needs ${length} weights of at least 0 with a finite sum above 0, not [${weights.join(", ")}]`,
    where: "prior",
  });
}
