import type { ProgramSystem } from "../program-system.ts";

/** Two of its tasks run side by side: their calls arrive in any order, and each lane is matched on its own. */
export const crewai: ProgramSystem = {
  id: "crewai",
  title: "CrewAI: a plan, its working with a tool, two checks side by side, the answer",
  language: "python",
  python: ["3.12", "3.11"],
  folder: "crewai",
  program: "program.py",
  install: { kind: "lock" },
  agents: ["planner", "solver", "checker", "auditor", "verifier"],
  lanes: "url",
  environment: { CREWAI_DISABLE_TELEMETRY: "true", CREWAI_TRACING_ENABLED: "false", OTEL_SDK_DISABLED: "true" },
  preload: "off",
  masks: true,
  // It keeps files of its own below HOME.
  sideEffects: "workdir",
  stepPolicy: "per-call",
  timeLimit: 300,
};
