import { stream } from "../../src/random.ts";

export type Split = "train" | "test";

/**
 * Assigns whole task groups to splits, so that no question stands in two. Groups are ordered by a seeded draw of their
 * own and the first share of them is the test set: adding records to known groups moves nothing.
 *
 * @param testShare share of groups in the test split, 0–1; rounded to the nearest whole group
 */
export function splitByGroup(groupIds: readonly string[], testShare: number, seed: number): ReadonlyMap<string, Split> {
  const groups = [...new Set(groupIds)].map((id) => ({ id, draw: stream(seed, "split", id).next() }));
  groups.sort((a, b) => a.draw - b.draw || (a.id < b.id ? -1 : 1));
  const testGroups = Math.round(groups.length * testShare);
  return new Map(groups.map(({ id }, index) => [id, index < testGroups ? "test" : "train"]));
}
