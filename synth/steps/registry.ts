import { byId } from "../../src/registry.ts";
import { perAgentTurn } from "./per-agent-turn.ts";
import { perCall } from "./per-call.ts";
import type { StepPolicy } from "./step-policy.ts";

export const stepPolicies: readonly StepPolicy[] = [perCall, perAgentTurn];

/** @throws RootstepError UNKNOWN_NAME listing the known ids */
export function stepPolicyById(id: string): StepPolicy {
  return byId(stepPolicies, id, "step policy", "--step-policy");
}
