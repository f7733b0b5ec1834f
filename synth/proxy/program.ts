import { spawn } from "node:child_process";
import { RootstepError } from "../../src/errors.ts";

export interface ProgramOptions {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeLimitMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onOutput?: ((bytes: Buffer, stream: "stdout" | "stderr") => void) | undefined;
}

export interface ProgramEnd {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
  readonly stdout: Buffer;
  /** Its last lines, for messages. */
  readonly stderrTail: string;
}

export interface RunningProgram {
  readonly finished: Promise<ProgramEnd>;
  /** Ends the whole process group: politely, then for good. */
  stop(): void;
}

/** From SIGTERM to SIGKILL, in milliseconds. */
const GRACE_MS = 2_000;
/** What is kept of the output; a program that prints more goes on, but its output is cut. In bytes. */
const LARGEST_OUTPUT = 16 * 1024 * 1024;
const TAIL_LENGTH = 4_000;

/**
 * Runs a program in a process group of its own. When it ends, or its time is up, the whole group ends: no child of it
 * goes on asking.
 *
 * @throws RootstepError (from `finished`) USAGE where it cannot be started
 */
export function runProgram(options: ProgramOptions): RunningProgram {
  const [file = "", ...args] = options.command;
  const child = spawn(file, args, {
    cwd: options.cwd,
    env: { ...options.env },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output: Buffer[] = [];
  let kept = 0;
  let stderrTail = "";
  let timedOut = false;
  let killer: NodeJS.Timeout | undefined;

  const signalGroup = (signal: NodeJS.Signals): void => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, signal);
    } catch {
      // The group has ended.
    }
  };
  const stop = (): void => {
    if (killer !== undefined) return;
    signalGroup("SIGTERM");
    killer = setTimeout(() => signalGroup("SIGKILL"), GRACE_MS);
  };
  const limit = setTimeout(() => {
    timedOut = true;
    stop();
  }, options.timeLimitMs);
  options.signal?.addEventListener("abort", stop, { once: true });
  if (options.signal?.aborted === true) stop();

  child.stdout.on("data", (bytes: Buffer) => {
    options.onOutput?.(bytes, "stdout");
    if (kept < LARGEST_OUTPUT) output.push(bytes.subarray(0, LARGEST_OUTPUT - kept));
    kept += bytes.length;
  });
  child.stderr.on("data", (bytes: Buffer) => {
    options.onOutput?.(bytes, "stderr");
    stderrTail = `${stderrTail}${bytes.toString("utf8")}`.slice(-TAIL_LENGTH);
  });

  const finished = new Promise<ProgramEnd>((resolve, reject) => {
    const settle = (): void => {
      clearTimeout(limit);
      clearTimeout(killer);
      options.signal?.removeEventListener("abort", stop);
    };
    child.once("error", (cause) => {
      settle();
      const where = options.command.join(" ");
      reject(new RootstepError("USAGE", { what: `the program cannot be started: ${cause.message}`, where, cause }));
    });
    child.once("exit", () => {
      signalGroup("SIGKILL"); // what it left behind
      // A grandchild in a session of its own may hold the pipes open.
      setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, GRACE_MS).unref();
    });
    child.once("close", (exitCode, signal) => {
      settle();
      resolve({ exitCode, signal, timedOut, stdout: Buffer.concat(output), stderrTail });
    });
  });
  return { finished, stop };
}
