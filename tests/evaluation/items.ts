import type { EvaluationItem } from "../../src/evaluation/datasets.ts";

/** A run with these agents, one step each, blamed at `step` (on the agent there unless told otherwise). */
export function run(id: string, agents: readonly string[], step: number, agent = agents[step]!): EvaluationItem {
  const label = { agent, step, source: "human" as const };
  return {
    id,
    groupId: id,
    subset: "made-up",
    label,
    trajectory: {
      schemaVersion: 1,
      id,
      task: { id, text: `task ${id}`, source: "made-up", groupId: id },
      system: "made-up",
      stepPolicy: "per-call",
      steps: agents.map((name, index) => ({
        index,
        agent: name,
        kind: "message" as const,
        content: `${name} says ${index}`,
        toolCalls: [],
        retrieved: [],
        callIds: [],
      })),
      outcome: { success: false, checker: "none" },
      labels: [label],
      provenance: { kind: "recorded", simulated: false, conversions: [] },
    },
  };
}
