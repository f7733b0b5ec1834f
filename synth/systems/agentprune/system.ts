import type { ProgramSystem } from "../program-system.ts";

/** The user's checkout of AgentPrune: its graph on one problem, each agent a lane. What it sends: see NOTES.md. */
export const agentprune: ProgramSystem = {
  id: "agentprune",
  title: "AgentPrune: the graph of your checkout, four solvers and a decision",
  language: "python",
  folder: "agentprune",
  program: "program.py",
  install: {
    kind: "checkout",
    variable: "ROOTSTEP_AGENTPRUNE",
    interpreter: "ROOTSTEP_AGENTPRUNE_PYTHON",
    mark: "AgentPrune/graph/graph.py",
    source: "https://github.com/yanweiyue/AgentPrune",
  },
  agents: ["math-solver", "mathematical-analyst", "programming-expert", "inspector", "decision"],
  lanes: "url",
  preload: "off",
  masks: true,
  // Four characters from os.urandom, which no preload reaches: `Agent 3qfQ as a …` and, to the decision, `3qfQ: …`.
  idPatterns: ["(?<=^Agent )[2-9A-HJ-NP-Za-km-z]{4}(?= as an? )", "^[2-9A-HJ-NP-Za-km-z]{4}(?=: )"],
  // The programming expert's answer is executed.
  sideEffects: "workdir",
  stepPolicy: "per-call",
  timeLimit: 600,
};
