import type { ProgramSystem } from "../program-system.ts";

/** The user's checkout of AFlow: one workflow on one problem, each operator a lane. What it sends: see NOTES.md. */
export const aflow: ProgramSystem = {
  id: "aflow",
  title: "AFlow: a workflow of your checkout, one lane for each operator",
  language: "python",
  folder: "aflow",
  program: "program.py",
  install: {
    kind: "checkout",
    variable: "ROOTSTEP_AFLOW",
    interpreter: "ROOTSTEP_AFLOW_PYTHON",
    mark: "scripts/async_llm.py",
    source: "https://github.com/FoundationAgents/AFlow",
  },
  agents: ["planner", "solver", "verifier", "ensemble"],
  lanes: "url",
  preload: "off",
  masks: true,
  // Its Programmer operator runs code that the model wrote.
  sideEffects: "workdir",
  stepPolicy: "per-call",
  timeLimit: 600,
};
