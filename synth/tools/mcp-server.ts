import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { RootstepError } from "../../src/errors.ts";

/** From the end of its input, and again from SIGTERM, in milliseconds. */
const GRACE_MS = 2_000;

/** The real MCP server behind the wrapper. */
export interface McpServer {
  send(line: string): void;
  /** Its exit code, or null where a signal ended it. */
  readonly ended: Promise<number | null>;
  /** Ends its input, which tells it to go; then politely, then for good. */
  stop(): Promise<number | null>;
}

export interface McpServerOptions {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly onLine: (line: string) => void;
}

/** @throws RootstepError (from `ended`) USAGE where it cannot be started */
export function startMcpServer({ command, env, onLine }: McpServerOptions): McpServer {
  const [file = "", ...args] = command;
  const child: ChildProcess & { readonly stdin: Writable; readonly stdout: Readable } = spawn(file, args, {
    env: { ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.on("error", () => {}); // it ended: `ended` says so
  readLines(child.stdout, onLine);
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", (cause) => {
      const what = `the MCP server cannot be started: ${cause.message}`;
      reject(new RootstepError("USAGE", { what, where: command.join(" "), cause }));
    });
    child.once("close", (code) => resolve(code));
  });
  ended.catch(() => {}); // whoever waits is told; nobody may be waiting yet
  return {
    send: (line) => void child.stdin.write(`${line}\n`),
    ended,
    async stop() {
      child.stdin.end();
      const timers = [
        setTimeout(() => child.kill("SIGTERM"), GRACE_MS),
        setTimeout(() => child.kill("SIGKILL"), 2 * GRACE_MS),
      ];
      try {
        return await ended;
      } finally {
        for (const timer of timers) clearTimeout(timer);
      }
    },
  };
}

/** Calls `onLine` for each whole line that is not empty; a last one without its end counts. */
export function readLines(input: Readable, onLine: (line: string) => void): void {
  let held = "";
  const take = (line: string): void => {
    const text = line.replace(/\r$/u, "");
    if (text !== "") onLine(text);
  };
  input.setEncoding("utf8");
  input.on("data", (part: string) => {
    const lines = `${held}${part}`.split("\n");
    held = lines.pop() ?? "";
    for (const line of lines) take(line);
  });
  input.on("end", () => take(held));
}
