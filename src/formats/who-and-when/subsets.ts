/** One half of Who&When; the halves name the speaker and the verdict differently. */
export interface WhoAndWhenSubset {
  /** First part of trajectory ids. */
  readonly slug: "algorithm-generated" | "hand-crafted";
  readonly folder: "Algorithm-Generated" | "Hand-Crafted";
  /** The field of a history entry that names the agent. */
  readonly speaker: "name" | "role";
  readonly verdict: "is_correct" | "is_corrected";
  /** The system the logs come from. */
  readonly system: "captain-agent" | "magentic-one";
}

/** The two subsets in the order they are read. */
export const WHO_AND_WHEN_SUBSETS = [
  {
    slug: "algorithm-generated",
    folder: "Algorithm-Generated",
    speaker: "name",
    verdict: "is_correct",
    system: "captain-agent",
  },
  {
    slug: "hand-crafted",
    folder: "Hand-Crafted",
    speaker: "role",
    verdict: "is_corrected",
    system: "magentic-one",
  },
] as const satisfies readonly [WhoAndWhenSubset, WhoAndWhenSubset];

/** The subset of that folder name, of either spelling. */
export function subsetNamed(name: unknown): WhoAndWhenSubset | undefined {
  return WHO_AND_WHEN_SUBSETS.find((subset) => subset.folder === name || subset.slug === name);
}
