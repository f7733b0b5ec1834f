import type { ProgramSystem } from "../program-system.ts";

/** Its worker ids are new in each run and stand in recorded answers: bound at L1 and rewritten there, see NOTES.md. */
export const camelWorkforce: ProgramSystem = {
  id: "camel-workforce",
  title: "CAMEL Workforce (the basis of OWL): planner, coordinator, and workers called by id",
  language: "python",
  python: ["3.12", "3.11"],
  folder: "camel-workforce",
  program: "program.py",
  install: { kind: "lock" },
  agents: ["planner", "coordinator", "solver", "verifier"],
  lanes: "url",
  environment: { CAMEL_MODEL_LOG_ENABLED: "false" },
  preload: "off",
  masks: true,
  sideEffects: "none",
  stepPolicy: "per-call",
  timeLimit: 300,
};
