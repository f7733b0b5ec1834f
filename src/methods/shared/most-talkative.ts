import { normalizeAgent } from "../../trajectory/agent-name.ts";

/** The agents with the most turns, all that tie, as their first turns write them. `exclude` are names left out. */
export function mostTalkative(
  view: { readonly steps: readonly { readonly agent: string }[] },
  exclude: readonly string[] = [],
): string[] {
  const excluded = new Set(exclude.map(normalizeAgent));
  const turns = new Map<string, { agent: string; count: number }>();
  for (const { agent } of view.steps) {
    const key = normalizeAgent(agent);
    if (excluded.has(key)) continue;
    const entry = turns.get(key) ?? { agent, count: 0 };
    entry.count += 1;
    turns.set(key, entry);
  }
  const most = Math.max(0, ...[...turns.values()].map((entry) => entry.count));
  return [...turns.values()].filter((entry) => entry.count === most).map((entry) => entry.agent);
}
