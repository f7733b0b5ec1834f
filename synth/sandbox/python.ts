import { existsSync } from "node:fs";
import type { SandboxLimits } from "./sandbox.ts";

/** The system's Python: below /usr, which is all that a sandbox sees of the host. */
export function pythonPath(): string {
  return ["/usr/bin/python3", "/usr/local/bin/python3"].find(existsSync) ?? "/usr/bin/python3";
}

/** The command that runs a Python file under rlimits. */
export function limited(limits: SandboxLimits, file: string): string[] {
  const { cpuSeconds, memoryBytes, fileBytes, processes } = limits;
  return [
    "prlimit",
    `--cpu=${cpuSeconds}:${cpuSeconds + 1}`,
    `--as=${memoryBytes}`,
    `--fsize=${fileBytes}`,
    `--nproc=${processes}`,
    "--nofile=64",
    "--core=0",
    "--",
    pythonPath(),
    ...["-s", "-B", file],
  ];
}
