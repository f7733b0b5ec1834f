import type { ProgramSystem } from "../program-system.ts";

export const smolagents: ProgramSystem = {
  id: "smolagents",
  title: "smolagents manager with a code-writing solver and a verifier (smolagents 1.26.0)",
  language: "python",
  python: ["3.12", "3.11"],
  folder: "smolagents",
  program: "program.py",
  install: { kind: "lock" },
  agents: ["manager", "solver", "verifier"],
  lanes: "url",
  environment: { HF_HUB_OFFLINE: "1", HF_HUB_DISABLE_TELEMETRY: "1" },
  preload: "off",
  masks: true,
  sideEffects: "none",
  stepPolicy: "per-call",
  timeLimit: 300,
};
