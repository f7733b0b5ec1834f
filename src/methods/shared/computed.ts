import { sameAgent } from "../../trajectory/agent-name.ts";
import type { Attribution } from "../method.ts";
import type { MethodView } from "../view.ts";

/** An answer that no model gave. */
export function computed(agent: string | null, step: number | null): Attribution {
  return { agent, step, evidence: [], calls: 0, parsePath: "computed" };
}

/** Index of the agent's first turn; null for an agent that does not act. */
export function firstTurn(view: MethodView, agent: string): number | null {
  return view.steps.find((step) => sameAgent(step.agent, agent))?.index ?? null;
}
