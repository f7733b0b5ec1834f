import type { ProgramSystem } from "../program-system.ts";

const autogen = {
  language: "python",
  python: ["3.12", "3.11"],
  folder: "autogen",
  program: "program.py",
  install: { kind: "lock" },
  lanes: "url",
  preload: "off",
  masks: true,
  sideEffects: "none",
  stepPolicy: "per-call",
  timeLimit: 300,
} as const;

/** A model is asked whose turn it is: calls of the group chat's manager stand between those of the agents. */
export const autogenSelector: ProgramSystem = {
  ...autogen,
  id: "autogen-selector",
  title: "AutoGen SelectorGroupChat of planner, solver and verifier (autogen-agentchat 0.7.5)",
  arguments: ["selector"],
  agents: ["selector", "planner", "solver", "verifier"],
};

export const autogenRoundRobin: ProgramSystem = {
  ...autogen,
  id: "autogen-round-robin",
  title: "AutoGen RoundRobinGroupChat of planner, solver and verifier (autogen-agentchat 0.7.5)",
  arguments: ["round-robin"],
  agents: ["planner", "solver", "verifier"],
};
