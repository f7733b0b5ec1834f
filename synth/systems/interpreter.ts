import { readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { RootstepError } from "../../src/errors.ts";
import type { ProgramSystem } from "./program-system.ts";
import { output } from "./tool.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Any 3.x will do where a system says nothing. */
const ANY_PYTHON = ["3.12", "3.11", "3.10", "3.13"] as const;

/**
 * A Python of one of the wanted versions, the best first: `python3.12`, pyenv's, uv's, `python3`. A name on PATH may be a
 * shim that runs nothing, so each is asked for its version.
 *
 * @throws RootstepError INTERPRETER_MISSING
 */
export async function findPython({ id, python = ANY_PYTHON }: ProgramSystem, env: Environment): Promise<string> {
  for (const version of python) {
    for (const candidate of candidates(version, env)) {
      const found = await askedPython(candidate, env);
      if (found?.version === version) return found.path;
    }
    const managed = (await output(["uv", "python", "find", "--no-project", version], env))?.trim();
    if (managed !== undefined && (await askedPython(managed, env))?.version === version) return managed;
  }
  throw new RootstepError("INTERPRETER_MISSING", {
    what: `${id} needs Python ${python.join(" or ")}, and there is none on PATH, in pyenv or in uv`,
    hint: `Install it, for example \`uv python install ${python[0]}\` or \`pyenv install ${python[0]}\`, and run the command again.`,
  });
}

function candidates(version: string, env: Environment): string[] {
  const versions = join(env.PYENV_ROOT ?? join(env.HOME ?? homedir(), ".pyenv"), "versions");
  return [`python${version}`, ...pyenvVersions(versions, version), "python3", "python"];
}

function pyenvVersions(folder: string, version: string): string[] {
  try {
    const found = readdirSync(folder).filter((name) => name === version || name.startsWith(`${version}.`));
    return found.sort().map((name) => join(folder, name, "bin", "python3"));
  } catch {
    return []; // no pyenv here
  }
}

/** The interpreter's own path and its version, `3.12`; undefined for what does not run. */
async function askedPython(
  command: string,
  env: Environment,
): Promise<{ readonly path: string; readonly version: string } | undefined> {
  const question = "import sys; print(sys.executable); print('%d.%d' % sys.version_info[:2])";
  const [path, version] = (await output([command, "-I", "-c", question], env))?.split("\n") ?? [];
  return path === undefined || version === undefined ? undefined : { path: path.trim(), version: version.trim() };
}
