import type { ProgramSystem } from "../program-system.ts";

/** Its packages pin each other into a corner: only without dependency resolution do they install. */
export const metagpt: ProgramSystem = {
  id: "metagpt",
  title: "MetaGPT: roles that watch each other's actions, answers streamed",
  language: "python",
  python: ["3.11"],
  folder: "metagpt",
  program: "program.py",
  install: { kind: "lock" },
  agents: ["planner", "solver", "verifier"],
  lanes: "url",
  preload: "off",
  masks: true,
  sideEffects: "workdir",
  stepPolicy: "per-call",
  heavy: true,
  timeLimit: 300,
};
