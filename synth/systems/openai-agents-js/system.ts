import type { ProgramSystem } from "../program-system.ts";

export const openaiAgentsJs: ProgramSystem = {
  id: "openai-agents-js",
  title: "OpenAI Agents SDK (JS): handoffs over the streamed Responses API (@openai/agents 0.20.0)",
  language: "node",
  folder: "openai-agents-js",
  program: "program.mjs",
  install: { kind: "lock" },
  agents: ["planner", "solver", "verifier"],
  lanes: "url",
  environment: { OPENAI_AGENTS_DISABLE_TRACING: "1" },
  preload: "off",
  masks: true,
  sideEffects: "none",
  stepPolicy: "per-call",
  timeLimit: 120,
};
