import { spawn } from "node:child_process";
import { throwIfInterrupted } from "../../src/interruption.ts";

import type { SandboxLimits, SandboxResult } from "./sandbox.ts";

export interface ProcessOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Contents of the file descriptors 4, 5, …: files that never lie on the host's disk. */
  readonly inputs?: readonly string[];
  readonly limits: Pick<SandboxLimits, "wallSeconds" | "outputBytes">;
  readonly signal?: AbortSignal | undefined;
}

export interface ProcessResult extends SandboxResult {
  /** What was written to file descriptor 3. */
  readonly status: string;
  /** Why the command could not be started. */
  readonly startError: NodeJS.ErrnoException | undefined;
}

const SIGXCPU_EXIT = 128 + 24;

/**
 * Runs a command as a process group of its own, with capped output and a wall clock; a limit or the signal kills the group.
 * @throws RootstepError INTERRUPTED
 */
export async function confinedProcess(options: ProcessOptions): Promise<ProcessResult> {
  const { command, args, env, cwd, inputs = [], limits, signal } = options;
  throwIfInterrupted(signal);
  const child = spawn(command, args, {
    env,
    ...(cwd === undefined ? {} : { cwd }),
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "pipe", ...inputs.map(() => "pipe" as const)],
  });
  let ended: SandboxResult["ended"] = "exited";
  let startError: NodeJS.ErrnoException | undefined;
  const kill = (): void => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // it is gone already
    }
  };
  const endBy = (limit: SandboxResult["ended"]): void => {
    if (ended === "exited") ended = limit;
    kill();
  };
  const outputs = [1, 2, 3].map((fd) => collect(child.stdio[fd], limits.outputBytes, () => endBy("output")));
  for (const [position, content] of inputs.entries()) {
    const pipe = child.stdio[4 + position];
    if (pipe === null || pipe === undefined || !("write" in pipe)) continue;
    pipe.on("error", () => undefined); // the command ended without reading all of it
    pipe.end(content);
  }
  const timer = setTimeout(() => endBy("wall clock"), limits.wallSeconds * 1000);
  signal?.addEventListener("abort", kill, { once: true });
  const code = await new Promise<number | null>((resolve) => {
    child.once("error", (error: NodeJS.ErrnoException) => {
      startError = error;
      resolve(null);
    });
    child.once("close", (exit) => resolve(exit));
  });
  clearTimeout(timer);
  signal?.removeEventListener("abort", kill);
  kill(); // what the command left running in its group
  throwIfInterrupted(signal);
  const [stdout = "", stderr = "", status = ""] = outputs.map((output) => output());
  if (ended === "exited" && (code === SIGXCPU_EXIT || child.signalCode === "SIGXCPU")) ended = "processor time";
  return { ended, exitCode: ended === "exited" ? code : null, stdout, stderr, status, startError };
}

type Piped = NonNullable<ReturnType<typeof spawn>["stdio"]>[number] | undefined;

/** Gathers what a stream says up to a limit; past it, the rest is dropped and `onFull` called. */
function collect(source: Piped, limit: number, onFull: () => void): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  if (source !== null && source !== undefined && "read" in source) {
    source.on("error", () => undefined);
    source.on("data", (chunk: Buffer) => {
      const room = limit - size;
      size += chunk.length;
      if (room > 0) chunks.push(chunk.subarray(0, room));
      if (size > limit) onFull();
    });
  }
  return () => Buffer.concat(chunks).toString("utf8");
}
