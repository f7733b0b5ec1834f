import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { sha256 } from "../../src/checksum.ts";
import { shippedPath } from "../../src/package-root.ts";
import type { Task } from "../../src/trajectory/schema.ts";
import { type Installation, packagesOf } from "./installation.ts";
import type { Environment } from "./interpreter.ts";
import type { PackageVersions } from "./packages.ts";
import type { ProgramSystem } from "./program-system.ts";

/** What a system's program is run with. */
export interface SystemProgram {
  readonly command: readonly string[];
  /** The caller's environment with the system's, the task's and the model's. */
  readonly env: Environment;
  /** What is installed now. */
  readonly packages: PackageVersions;
}

export interface SystemTask {
  readonly set: string;
  readonly id: string;
  readonly text: string;
}

/** The task as a program may see it: without reference answer and solution. */
export function systemTask(set: string, { id, text }: Task): SystemTask {
  return { set, id, text };
}

/**
 * How to run a system on a task: its command and environment, to be started behind the proxy.
 * @param installation where its packages are (`requireInstalled`)
 */
export async function systemProgram(
  system: ProgramSystem,
  installation: Installation,
  { task, model, env }: { readonly task: SystemTask; readonly model: string; readonly env: Environment },
): Promise<SystemProgram> {
  const file = system.language === "python" ? shippedProgram(system) : copiedProgram(system, installation);
  return {
    command: [installation.interpreter, file, ...(system.arguments ?? [])],
    env: {
      ...env,
      ...(system.language === "python" ? pythonEnvironment() : {}),
      ...system.environment,
      ...(system.install.kind === "checkout" ? { [system.install.variable]: installation.folder } : {}),
      ROOTSTEP_TASK: JSON.stringify(task),
      ROOTSTEP_MODEL: model,
    },
    packages: await packagesOf(system, installation, env),
  };
}

const support = (...parts: readonly string[]): string => shippedPath("synth", "systems", "support", ...parts);

const shippedProgram = ({ folder, program }: ProgramSystem): string => shippedPath("synth", "systems", folder, program);

/** The system's packages and nothing of the user's own. */
function pythonEnvironment(): Environment {
  return {
    PYTHONPATH: [support()].join(delimiter),
    PYTHONNOUSERSITE: "1",
    // The order of sets is part of what some programs send: whatever the user's environment says.
    PYTHONHASHSEED: "0",
    PYTHONHOME: undefined,
    PYTHONSTARTUP: undefined,
    VIRTUAL_ENV: undefined,
    // rootstep's own folder may be read-only, and is not theirs to write to.
    PYTHONDONTWRITEBYTECODE: "1",
  };
}

/**
 * Node finds packages from the program's own folder upwards, so the program runs from a copy beside node_modules: one
 * folder per content, written whole.
 */
function copiedProgram(system: ProgramSystem, { folder }: Installation): string {
  const files = new Map([[system.program, readFileSync(shippedProgram(system))]]);
  files.set("rootstep_program.mjs", readFileSync(support("rootstep_program.mjs")));
  for (const name of readdirSync(support("prompts")))
    files.set(join("prompts", name), readFileSync(support("prompts", name)));
  const address = sha256([...files].map(([name, bytes]) => `${name} ${sha256(bytes)}`).join("\n")).slice(0, 12);
  const copy = join(folder, "programs", address);
  if (!existsSync(copy)) {
    const begun = `${copy}.${process.pid}`;
    mkdirSync(join(begun, "prompts"), { recursive: true });
    for (const [name, bytes] of files) writeFileSync(join(begun, name), bytes);
    try {
      renameSync(begun, copy);
    } catch (cause) {
      rmSync(begun, { recursive: true, force: true });
      if (!existsSync(copy)) throw cause; // another process was quicker, and made the same
    }
  }
  return join(copy, system.program);
}
