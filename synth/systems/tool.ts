import { tmpdir } from "node:os";
import { type ProgramEnd, runProgram } from "../proxy/program.ts";
import type { Environment } from "./interpreter.ts";

export interface ToolOptions {
  readonly env: Environment;
  readonly cwd?: string | undefined;
  readonly timeLimitMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onOutput?: ((bytes: Buffer) => void) | undefined;
}

/** Runs a tool of this machine (pip, npm, an interpreter) to its end. @throws RootstepError USAGE where it cannot be started */
export function runTool(command: readonly string[], options: ToolOptions): Promise<ProgramEnd> {
  const { env, cwd = tmpdir(), timeLimitMs, signal, onOutput } = options;
  return runProgram({ command, cwd, env: defined(env), timeLimitMs, signal, onOutput }).finished;
}

/** What a tool prints; undefined where it is not there or fails. */
export async function output(command: readonly string[], env: Environment, cwd?: string): Promise<string | undefined> {
  try {
    const end = await runTool(command, { env, cwd, timeLimitMs: 60_000 });
    return end.exitCode === 0 ? end.stdout.toString("utf8") : undefined;
  } catch {
    return undefined; // no such command
  }
}

function defined(env: Environment): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}
