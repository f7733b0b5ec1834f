import type { ProgramSystem } from "../program-system.ts";

export const aiSdk: ProgramSystem = {
  id: "ai-sdk",
  title: "AI SDK: an agent with a tool, streams, structured output (ai 6.0.326, @ai-sdk/openai-compatible 2.0.92)",
  language: "node",
  folder: "ai-sdk",
  program: "program.mjs",
  install: { kind: "lock" },
  agents: ["planner", "solver", "verifier", "auditor"],
  lanes: "url",
  preload: "off",
  masks: true,
  sideEffects: "none",
  stepPolicy: "per-call",
  timeLimit: 120,
};
