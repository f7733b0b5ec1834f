import type { ProgramSystem } from "../program-system.ts";

const base = {
  language: "python",
  python: ["3.12", "3.11"],
  folder: "langgraph",
  program: "program.py",
  install: { kind: "lock" },
  lanes: "url",
  environment: { LANGSMITH_TRACING: "false", LANGCHAIN_TRACING_V2: "false" },
  masks: true,
  sideEffects: "none",
  stepPolicy: "per-call",
  timeLimit: 300,
} as const;

export const langgraph: ProgramSystem = {
  ...base,
  id: "langgraph",
  title: "LangGraph graph of planner, solver and verifier (langgraph 1.2.24, langchain-openai 1.7.4)",
  agents: ["planner", "solver", "verifier"],
  preload: "off",
};

export const langgraphSupervisor: ProgramSystem = {
  ...base,
  id: "langgraph-supervisor",
  title: "langgraph-supervisor that hands over to planner, solver and verifier (langgraph-supervisor 0.0.31)",
  arguments: ["supervisor"],
  agents: ["supervisor", "planner", "solver", "verifier"],
  // Ids of hand-off messages are random; masks mend that (NOTES.md).
  preload: "off",
};
