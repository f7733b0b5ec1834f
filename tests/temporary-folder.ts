import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made: string[] = [];

const takeAway = (): void => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
};

// scripts/chaos.ts runs a harness without vitest; vitest's workers end without `exit`.
if (process.env.VITEST === undefined) process.on("exit", takeAway);
else (await import("vitest")).afterAll(takeAway);

/** A new folder that is taken away when the test file, or the process without vitest, is done. */
export function temporaryFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `rootstep-${name}-`));
  made.push(folder);
  return folder;
}
