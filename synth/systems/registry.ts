import { byId } from "../../src/registry.ts";
import { plannerSolverVerifier } from "./planner-solver-verifier/system.ts";
import type { AgentSystem } from "./system.ts";

/** Every system that ships; a new one is a folder and a line here. */
export const systems: readonly AgentSystem[] = [plannerSolverVerifier];

/** @throws RootstepError UNKNOWN_NAME listing the known ones */
export function systemById(id: string): AgentSystem {
  return byId(systems, id, "system", "system");
}
