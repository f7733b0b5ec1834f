import { sha256 } from "../../src/checksum.ts";
import { bubblewrapSandbox } from "./bubblewrap.ts";
import type { PythonProgram, Sandbox, SandboxResult } from "./sandbox.ts";

const MOST = 5000;

/**
 * A sandbox that runs the same program once: reruns of a team ask for the same ones over and over. Results of programs that
 * met a limit are not kept.
 */
export function remembered(sandbox: Sandbox): Sandbox {
  const known = new Map<string, Promise<SandboxResult>>();
  return {
    id: sandbox.id,
    require: () => sandbox.require(),
    async run(program, signal) {
      const key = keyOf(program);
      const kept = known.get(key);
      if (kept !== undefined) return kept;
      const running = sandbox.run(program, signal);
      known.set(key, running);
      try {
        const result = await running;
        if (result.ended !== "exited") known.delete(key);
        return result;
      } catch (error) {
        known.delete(key);
        throw error;
      } finally {
        if (known.size > MOST) known.delete([...known.keys()][0] ?? "");
      }
    },
  };
}

function keyOf({ files, limits }: PythonProgram): string {
  return sha256(JSON.stringify([Object.entries(files).sort(), limits ?? {}]));
}

/** What task sets and systems run code in unless they are given another sandbox. */
export const defaultSandbox = remembered(bubblewrapSandbox());
