import { describe } from "vitest";

/** Real servers that `scripts/engines/engines.sh` starts; their addresses come by environment. */
export interface EngineServers {
  readonly vllm: URL;
  readonly skyrl: URL;
  /** Where the SkyRL server keeps checkpoints, on this machine. */
  readonly skyrlState: string;
  readonly ray: URL;
  readonly rayToken: string;
  /** The tiny Qwen3 that both servers start with, and one of the same shape with other weights. */
  readonly model: string;
  readonly otherModel: string;
  /** A Python with pyarrow. */
  readonly python: string;
  /** Where `engines.sh` keeps their process ids and logs. */
  readonly folder: string;
}

/** @throws where a variable is missing: within `describeWithEngines` all of them are there */
export function engineServers(): EngineServers {
  const read = (name: string): string => {
    const value = process.env[name];
    if (value === undefined || value === "") throw new Error(`${name} is not set: source FOLDER/env of engines.sh`);
    return value;
  };
  return {
    vllm: new URL(read("ROOTSTEP_VLLM_URL")),
    skyrl: new URL(read("ROOTSTEP_SKYRL_URL")),
    skyrlState: read("ROOTSTEP_SKYRL_STATE"),
    ray: new URL(read("ROOTSTEP_RAY_URL")),
    rayToken: read("ROOTSTEP_RAY_TOKEN"),
    model: read("ROOTSTEP_TINY_MODEL"),
    otherModel: read("ROOTSTEP_TINY_MODEL_OTHER"),
    python: read("ROOTSTEP_ENGINE_PYTHON"),
    folder: read("ROOTSTEP_ENGINES_FOLDER"),
  };
}

/** Tests against real servers: skipped with the command that brings them, or failing where they are required. */
export function describeWithEngines(name: string, tests: () => void): void {
  const present = process.env.ROOTSTEP_VLLM_URL !== undefined;
  if (present || process.env.ROOTSTEP_REQUIRE_ENGINES === "1") describe(name, tests);
  else describe.skip(`${name} (needs real servers: scripts/engines/engines.sh start FOLDER)`, tests);
}
