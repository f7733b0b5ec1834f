import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { stream } from "../../src/random.ts";
import { startCli } from "../cli/run-cli.ts";

/** Seed of the moments at which processes are killed; printed by the tests that use it. */
export const KILL_SEED = Number(process.env.ROOTSTEP_TEST_SEED ?? 1);

/** Every file below a folder that is not left out, with its checksum. */
export function digest(folder: string, leftOut: readonly string[]): string[] {
  return filesBelow(folder)
    .map((file) => relative(folder, file))
    .filter((name) => !leftOut.some((prefix) => name.startsWith(prefix)))
    .map(
      (name) =>
        `${name} ${createHash("sha256")
          .update(readFileSync(join(folder, name)))
          .digest("hex")}`,
    )
    .sort();
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? filesBelow(join(folder, entry.name)) : [join(folder, entry.name)],
  );
}

/** Bytes in these files of a folder that may only be half there. */
export function bytesIn(folder: string, names: readonly string[]): number {
  return names
    .map((name) => join(folder, name))
    .reduce((sum, file) => sum + (existsSync(file) ? statSync(file).size : 0), 0);
}

/**
 * Starts a command again and again and kills it with SIGKILL as soon as random shares of its work are on disk.
 * @returns how many starts were really ended by the signal
 */
export async function killRepeatedly(options: {
  readonly args: readonly string[];
  readonly times: number;
  /** Work on disk so far, in any unit. */
  readonly done: () => number;
  readonly total: number;
}): Promise<number> {
  const random = stream(KILL_SEED, "kill points", options.args[0] ?? "");
  const shares = Array.from({ length: options.times }, () => random.next()).sort((a, b) => a - b);
  let kills = 0;
  for (const share of shares) {
    const run = startCli(options.args);
    let ended = false;
    void run.finished.then(() => {
      ended = true;
    });
    while (!ended && options.done() < share * options.total) await new Promise(setImmediate);
    run.child.kill("SIGKILL");
    kills += Number((await run.finished).signal === "SIGKILL");
  }
  return kills;
}
