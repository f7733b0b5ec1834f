import { levelsOf } from "./e-bh.ts";
import { type LabelEvidence, labelEValue } from "./label-e-value.ts";

export interface SearchedRun extends LabelEvidence {
  readonly id: string;
}

export interface LabelLevel {
  /** Against "the correction of the named step has no effect"; 0 where none was named. */
  readonly eValue: number;
  /** The smallest false discovery rate at which e-BH keeps the label. */
  readonly fdrLevel: number;
}

/**
 * e-BH over all runs that one strategy searched, those without a label too: each run is one hypothesis.
 *
 * @param lengthOf steps of a run, by id
 */
export function labelLevels(
  searches: readonly SearchedRun[],
  lengthOf: (id: string) => number,
): ReadonlyMap<string, LabelLevel> {
  const eValues = searches.map((search) => labelEValue(search, lengthOf(search.id)));
  const levels = levelsOf(eValues);
  return new Map(searches.map(({ id }, index) => [id, { eValue: eValues[index] ?? 0, fdrLevel: levels[index] ?? 1 }]));
}
