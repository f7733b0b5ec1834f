import { byId } from "../../src/registry.ts";
import { aflow } from "./aflow/system.ts";
import { agentprune } from "./agentprune/system.ts";
import { aiSdk } from "./ai-sdk/system.ts";
import { autogenRoundRobin, autogenSelector } from "./autogen/system.ts";
import { blackjackTable } from "./blackjack/system.ts";
import { camelWorkforce } from "./camel-workforce/system.ts";
import { coderTester } from "./coder-tester/system.ts";
import { crewai } from "./crewai/system.ts";
import { langgraph, langgraphSupervisor } from "./langgraph/system.ts";
import { metagpt } from "./metagpt/system.ts";
import { openaiAgentsJs } from "./openai-agents-js/system.ts";
import { plannerSolverVerifier } from "./planner-solver-verifier/system.ts";
import type { ProgramSystem } from "./program-system.ts";
import { searcher } from "./searcher/system.ts";
import { smolagents } from "./smolagents/system.ts";
import type { AgentSystem } from "./system.ts";

/** Every in-process system that ships; a new one is a folder and a line here. */
export const systems: readonly AgentSystem[] = [plannerSolverVerifier, coderTester, searcher, blackjackTable];

/** Every system that runs as a program behind the proxy; a new one is a folder and a line here. */
export const programSystems: readonly ProgramSystem[] = [
  autogenRoundRobin,
  autogenSelector,
  langgraph,
  langgraphSupervisor,
  smolagents,
  camelWorkforce,
  crewai,
  openaiAgentsJs,
  aiSdk,
  metagpt,
  aflow,
  agentprune,
];

/** @throws RootstepError UNKNOWN_NAME listing the known ones */
export function systemById(id: string): AgentSystem {
  return byId(systems, id, "system", "system");
}

/** @throws RootstepError UNKNOWN_NAME listing the known ones */
export function programSystemById(id: string): ProgramSystem {
  return byId(programSystems, id, "program system", "--system");
}
