import { RootstepError } from "../../src/errors.ts";
import { plannerSolverVerifier } from "./planner-solver-verifier/system.ts";
import type { AgentSystem } from "./system.ts";

/** Every system that ships; a new one is a folder and a line here. */
export const systems: readonly AgentSystem[] = [plannerSolverVerifier];

/** @throws RootstepError UNKNOWN_NAME listing the known ones */
export function systemById(id: string): AgentSystem {
  const found = systems.find((system) => system.id === id);
  if (found !== undefined) return found;
  throw new RootstepError("UNKNOWN_NAME", {
    what: `there is no system "${id}"; known: ${systems.map((system) => system.id).join(", ")}`,
    where: "system",
  });
}
