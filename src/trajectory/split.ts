import { stream } from "../random.ts";

export interface SplitRule {
  /** Share of the groups that are held out, 0–1. */
  readonly share: number;
  readonly seed: number;
  /** Name of the draws: two splits of one data set under different names are independent. */
  readonly name: string;
  /**
   * `exact`: the share of the groups there are, rounded to the nearest whole group; a new group may move the last place.
   * `stable`: each group by its own draw, so that the share holds on average and no new group moves another.
   */
  readonly cut: "exact" | "stable";
}

/**
 * The task groups that are held out: the ones with the smallest draws. A group's draw depends on its name and the seed
 * alone, so records of known groups and their order change nothing, and no question stands on both sides.
 */
export function heldOutGroups(groupIds: Iterable<string>, { share, seed, name, cut }: SplitRule): ReadonlySet<string> {
  const groups = [...new Set(groupIds)].map((id) => ({ id, draw: stream(seed, name, id).next() }));
  groups.sort((a, b) => a.draw - b.draw || (a.id < b.id ? -1 : 1));
  const heldOut = groups.filter(({ draw }, rank) =>
    cut === "stable" ? draw < share : rank < Math.round(groups.length * share),
  );
  return new Set(heldOut.map(({ id }) => id));
}
