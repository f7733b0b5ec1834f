import type { ChatRequest } from "../../../src/models/chat-model.ts";
import { aflow } from "./aflow.ts";
import { agentprune } from "./agentprune.ts";
import { aiSdk } from "./ai-sdk.ts";
import { autogenSelector } from "./autogen.ts";
import { camelWorkforce } from "./camel-workforce.ts";
import { crewai } from "./crewai.ts";
import type { Dialect, Reading } from "./dialect.ts";
import { langgraphSupervisor } from "./langgraph-supervisor.ts";
import { openaiAgentsJs } from "./openai-agents-js.ts";
import { own } from "./own.ts";
import { smolagents } from "./smolagents.ts";
import { team } from "./team.ts";

/** How the simulator's prompts are worded; the first that claims a request reads it. A new one is a file and a line here. */
export const dialects: readonly Dialect[] = [
  own,
  openaiAgentsJs,
  aiSdk,
  autogenSelector,
  langgraphSupervisor,
  smolagents,
  camelWorkforce,
  crewai,
  aflow,
  agentprune,
  // Last: any team whose roles answer in plain text.
  team,
];

export function readRequest(request: ChatRequest): Reading | undefined {
  for (const dialect of dialects) {
    const reading = dialect.read(request);
    if (reading !== undefined) return reading;
  }
  return undefined;
}
