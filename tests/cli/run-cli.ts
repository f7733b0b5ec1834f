import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { shippedPath } from "../../src/package-root.ts";
import { temporaryFolder } from "../temporary-folder.ts";

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly finished: Promise<Finished>;
  /** Resolves when standard output and error together hold the text. */
  seen(text: string): Promise<void>;
}

/** Starts the built command line (`npm test` builds it first) as a user would. */
export function startCli(args: readonly string[], env: Record<string, string> = {}): Running {
  const child = spawn(process.execPath, [shippedPath("dist", "src", "cli", "bin.js"), ...args], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  const watchers: { readonly text: string; readonly resolve: () => void }[] = [];
  const check = (): void => {
    for (const { text, resolve } of watchers) if ((stdout + stderr).includes(text)) resolve();
  };
  child.stdout.on("data", (part: Buffer) => {
    stdout += part;
    check();
  });
  child.stderr.on("data", (part: Buffer) => {
    stderr += part;
    check();
  });
  const finished = new Promise<Finished>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  return {
    child,
    finished,
    seen: (text) =>
      Promise.race([
        new Promise<void>((resolve) => {
          watchers.push({ text, resolve });
          check();
        }),
        finished.then(({ stderr: all }) => {
          if (!(stdout + all).includes(text))
            throw new Error(`the command ended without printing "${text}":\n${stdout}${all}`);
        }),
      ]),
  };
}

export const cli = (args: readonly string[], env: Record<string, string> = {}): Promise<Finished> =>
  startCli(args, env).finished;

/** A new path below a temporary folder. */
export const freshPath = (name: string): string => join(temporaryFolder("cli"), name);
