import { normalizeAgent } from "../trajectory/agent-name.ts";

/** Distances in steps at which a step still counts as found. */
export const TOLERANCES = [0, 1, 2, 3] as const;
export type Tolerance = (typeof TOLERANCES)[number];

/** What a guess without reading the log scores on a set: the number every method has to beat. */
export interface Floor {
  readonly id:
    | "constant-step"
    | "random-step"
    | "last-step"
    | "true-agent-first-turn"
    | "constant-agent"
    | "random-agent"
    | "most-talkative-agent"
    | "most-talkative-agent-without"
    | "most-talkative-by-characters"
    | "layout-mode-step"
    | "layout-mode-agent";
  readonly column: "step" | "agent";
  /** 0 for exact; agents are always exact. */
  readonly tolerance: Tolerance;
  /** Expected share of hits, in [0, 1]. */
  readonly value: number;
  readonly n: number;
  /** The constant, the agents left out, the coverage. */
  readonly detail: string;
  /** Knows part of the label: printed, but no bar that a result has to clear. */
  readonly oracle: boolean;
  /** A floor of our own making, stronger than the field's: printed, but no bar. */
  readonly ours?: true;
}

/** The step that lies within the tolerance of most labels; the smallest of equals. */
export function bestConstant(labelSteps: readonly number[], tolerance: number): number {
  let best = 0;
  let most = -1;
  for (let guess = 0; guess <= Math.max(0, ...labelSteps); guess++) {
    const hits = labelSteps.filter((step) => Math.abs(step - guess) <= tolerance).length;
    if (hits > most) [best, most] = [guess, hits];
  }
  return best;
}

/** The most frequent name, as its first occurrence writes it; the first by normalised name of equals. */
export function mostFrequentAgent(agents: readonly string[]): string {
  const counts = new Map<string, { agent: string; count: number }>();
  for (const agent of agents) {
    const key = normalizeAgent(agent);
    const entry = counts.get(key) ?? { agent, count: 0 };
    entry.count += 1;
    counts.set(key, entry);
  }
  const [most] = [...counts].sort(([a, x], [b, y]) => y.count - x.count || (a < b ? -1 : 1));
  return most?.[1].agent ?? "";
}
