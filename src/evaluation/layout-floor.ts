import { normalizeAgent, sameAgent } from "../trajectory/agent-name.ts";
import type { EvaluationItem } from "./datasets.ts";
import { bestConstant, type Floor, mostFrequentAgent, TOLERANCES } from "./floor.ts";

/** Who acts when, without a word of what is said. */
function layoutKey(item: EvaluationItem): string {
  return JSON.stringify(item.trajectory.steps.map((step) => normalizeAgent(step.agent)));
}

/**
 * What knowing the layout alone is worth: the label that training runs with the same sequence of agents have most often,
 * and that of all training runs where the layout is new. A tracer that does not beat it has learnt where labels lie, not
 * what went wrong.
 */
export function layoutFloors(items: readonly EvaluationItem[], train: readonly EvaluationItem[]): Floor[] {
  if (items.length === 0 || train.length === 0) return [];
  const byLayout = new Map<string, EvaluationItem[]>();
  for (const item of train) {
    const key = layoutKey(item);
    const group = byLayout.get(key);
    if (group === undefined) byLayout.set(key, [item]);
    else group.push(item);
  }
  const seen = items.filter((item) => byLayout.has(layoutKey(item))).length;
  const detail = `learnt from ${train.length} runs; layout known for ${seen} of ${items.length}`;
  const peers = (item: EvaluationItem): readonly EvaluationItem[] => byLayout.get(layoutKey(item)) ?? train;
  const share = (hit: (item: EvaluationItem) => boolean): number => items.filter(hit).length / items.length;
  const common = { n: items.length, detail, oracle: false };
  return [
    ...TOLERANCES.map((tolerance) => ({
      ...common,
      id: "layout-mode-step" as const,
      column: "step" as const,
      tolerance,
      value: share((item) => {
        const guess = bestConstant(
          peers(item).map((peer) => peer.label.step),
          tolerance,
        );
        return Math.abs(guess - item.label.step) <= tolerance;
      }),
    })),
    {
      ...common,
      id: "layout-mode-agent",
      column: "agent",
      tolerance: 0,
      value: share((item) =>
        sameAgent(mostFrequentAgent(peers(item).map((peer) => peer.label.agent)), item.label.agent),
      ),
    },
  ];
}
