import { randomBytes } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { sha256 } from "../../src/checksum.ts";
import { RootstepError } from "../../src/errors.ts";
import { throwIfInterrupted } from "../../src/interruption.ts";
import { isAlive } from "../../src/is-alive.ts";
import { shippedPath } from "../../src/package-root.ts";

import { type Environment, findPython } from "./interpreter.ts";
import { nodePackages, type PackageVersions, packageDifferences, pinnedPackages, pythonPackages } from "./packages.ts";
import type { ProgramSystem } from "./program-system.ts";
import { output, runTool } from "./tool.ts";

/** Where a system's packages are. */
export interface Installation {
  /** The virtual environment's or node_modules' folder, or the user's checkout. */
  readonly folder: string;
  /** Runs the program. */
  readonly interpreter: string;
}

export type InstallationState =
  | ({ readonly state: "installed" } & Installation)
  /** @property what is missing, in a few words · do: what mends it */
  | { readonly state: "missing"; readonly what: string; readonly do: string };

const isSet = (value: string | undefined): value is string => value !== undefined && value !== "";

/** Folder of all installations: $ROOTSTEP_CACHE, else $XDG_CACHE_HOME/rootstep, else ~/.cache/rootstep, and in it `systems`. */
export function systemsCache(env: Environment): string {
  const cache = isSet(env.ROOTSTEP_CACHE)
    ? env.ROOTSTEP_CACHE
    : join(isSet(env.XDG_CACHE_HOME) ? env.XDG_CACHE_HOME : join(env.HOME ?? homedir(), ".cache"), "rootstep");
  return join(cache, "systems");
}

const LOCKS = { python: ["requirements.txt"], node: ["package.json", "package-lock.json"] } as const;

const shipped = (system: ProgramSystem, file: string): string => shippedPath("synth", "systems", system.folder, file);

/** `autogen-1a2b3c4d5e6f`: another lock is another installation, so that an upgrade never meets what was there before. */
function installationFolder(system: ProgramSystem, env: Environment): string {
  const lock = LOCKS[system.language].map((file) => readFileSync(shipped(system, file), "utf8"));
  return join(
    systemsCache(env),
    `${basename(system.folder)}-${sha256([...lock, ...(system.python ?? [])].join("\0")).slice(0, 12)}`,
  );
}

const MARK = "installed";

/** Whether the system can be run here, and else what is missing. */
export function installed(system: ProgramSystem, env: Environment): InstallationState {
  const { install: recipe, language } = system;
  if (recipe.kind === "checkout") {
    const folder = env[recipe.variable];
    if (!isSet(folder)) {
      const what = `your checkout of ${recipe.source}`;
      return { state: "missing", what, do: `set ${recipe.variable} to its folder` };
    }
    if (!existsSync(join(folder, recipe.mark))) {
      const what = `${recipe.mark} in ${folder}`;
      return { state: "missing", what, do: `set ${recipe.variable} to a checkout of ${recipe.source}` };
    }
    const plain = language === "python" ? "python3" : process.execPath;
    const named = env[recipe.interpreter];
    return { state: "installed", folder, interpreter: isSet(named) ? named : plain };
  }
  const folder = installationFolder(system, env);
  if (!existsSync(join(folder, MARK))) {
    return { state: "missing", what: "its packages", do: `rootstep install ${system.id}` };
  }
  return { state: "installed", folder, interpreter: interpreterIn(system, folder) };
}

/** @throws RootstepError SYSTEM_NOT_INSTALLED with the command that mends it */
export function requireInstalled(system: ProgramSystem, env: Environment): Installation {
  const found = installed(system, env);
  if (found.state === "installed") return { folder: found.folder, interpreter: found.interpreter };
  throw new RootstepError("SYSTEM_NOT_INSTALLED", {
    what: `${system.id} lacks ${found.what}`,
    hint: `Do this first: ${found.do}`,
  });
}

/** Versions of the packages that a system has now. @throws RootstepError SYSTEM_FAILED where its interpreter does not run */
export async function packagesOf(
  { id, language }: ProgramSystem,
  { interpreter, folder }: Installation,
  env: Environment,
): Promise<PackageVersions> {
  if (language === "node") return nodePackages(folder);
  const found = await pythonPackages(interpreter, env);
  if (found !== undefined) return found;
  throw new RootstepError("SYSTEM_FAILED", {
    what: `the Python of ${id} does not run`,
    where: interpreter,
    hint: `Delete ${folder} and run \`rootstep install ${id}\` again.`,
  });
}

function interpreterIn(system: ProgramSystem, folder: string): string {
  return system.language === "python" ? join(folder, "venv", "bin", "python") : process.execPath;
}

export interface InstallOptions {
  readonly env: Environment;
  readonly signal?: AbortSignal | undefined;
  /** What the installers print. */
  readonly onOutput?: ((bytes: Buffer) => void) | undefined;
  /** Waits before another attempt, in milliseconds. */
  readonly wait: (ms: number) => Promise<void>;
}

const ATTEMPTS = 3;
/** The largest take minutes on a slow line. */
const TIME_LIMIT_MS = 30 * 60_000;

/**
 * Installs what a system's lock names, whole or not at all: in a folder of its own that gets its name when all is there.
 * A network's hiccup is tried again. Nothing is done where it is installed already.
 *
 * @throws RootstepError INTERPRETER_MISSING, INSTALL_FAILED with the installer's last lines, INTERRUPTED,
 * SYSTEM_NOT_INSTALLED for a system of the user's own checkout
 */
export async function install(system: ProgramSystem, options: InstallOptions): Promise<Installation> {
  const { env, signal } = options;
  const there = installed(system, env);
  if (there.state === "installed" || system.install.kind === "checkout") return requireInstalled(system, env);
  const folder = installationFolder(system, env);
  takeAwayAbandoned(folder);
  const begun = `${folder}.${process.pid}-${randomBytes(3).toString("hex")}`;
  mkdirSync(begun, { recursive: true });
  try {
    for (const file of LOCKS[system.language]) copyFileSync(shipped(system, file), join(begun, file));
    if (system.language === "python") await installPython(system, begun, options);
    else await step(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], begun, options);
    await refuseOtherVersions(system, begun, env);
    writeFileSync(join(begun, MARK), "");
    throwIfInterrupted(signal);
    settle(begun, folder);
  } finally {
    rmSync(begun, { recursive: true, force: true });
  }
  return { folder, interpreter: interpreterIn(system, folder) };
}

/** What installers that were killed left behind. */
function takeAwayAbandoned(folder: string): void {
  const parent = dirname(folder);
  for (const name of existsSync(parent) ? readdirSync(parent) : []) {
    const pid = name.startsWith(`${basename(folder)}.`) ? /\.(\d+)-[0-9a-f]+$/u.exec(name)?.[1] : undefined;
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(parent, name), { recursive: true, force: true });
  }
}

/** Gives the finished folder its name; another process may have been quicker, and made the same. */
function settle(begun: string, folder: string): void {
  if (existsSync(folder) && !existsSync(join(folder, MARK))) rmSync(folder, { recursive: true, force: true });
  try {
    renameSync(begun, folder);
  } catch (cause) {
    if (existsSync(join(folder, MARK))) return;
    throw new RootstepError("FILE_UNREADABLE", {
      what: "the installation cannot be put in its place",
      where: folder,
      cause,
    });
  }
}

async function installPython(system: ProgramSystem, folder: string, options: InstallOptions): Promise<void> {
  const python = await findPython(system, options.env);
  const venv = join(folder, "venv");
  const interpreter = interpreterIn(system, folder);
  const lock = ["-r", join(folder, "requirements.txt")];
  const more = system.install.kind === "lock" ? (system.install.pipOptions ?? []) : [];
  // The lock names every package: resolving again could only disagree with it.
  if ((await output(["uv", "--version"], options.env)) !== undefined) {
    await step(["uv", "venv", "--no-project", "--python", python, venv], folder, options);
    await step(
      ["uv", "pip", "install", "--python", interpreter, "--no-deps", "--compile-bytecode", ...more, ...lock],
      folder,
      options,
    );
  } else {
    await step([python, "-m", "venv", venv], folder, options);
    const pip = [interpreter, "-m", "pip", "install", "--disable-pip-version-check"];
    await step([...pip, "--no-deps", ...more, ...lock], folder, options);
  }
}

/** One command of an installer, tried again where it fails. */
async function step(command: readonly string[], cwd: string, options: InstallOptions): Promise<void> {
  const { env, signal, onOutput, wait } = options;
  for (let attempt = 1; ; attempt++) {
    const { exitCode, stderrTail, timedOut } = await runTool(command, {
      env,
      cwd,
      signal,
      onOutput,
      timeLimitMs: TIME_LIMIT_MS,
    });
    throwIfInterrupted(signal);
    if (exitCode === 0) return;
    if (attempt === ATTEMPTS) {
      const last = stderrTail.trim().split("\n").slice(-3).join(" ").slice(-400);
      const how = timedOut ? "took too long" : `failed ${ATTEMPTS} times`;
      throw new RootstepError("INSTALL_FAILED", {
        what: `${command.slice(0, 3).join(" ")} … ${how}: ${last}`,
        where: cwd,
      });
    }
    await wait(2_000 * attempt);
  }
}

async function refuseOtherVersions(system: ProgramSystem, folder: string, env: Environment): Promise<void> {
  if (system.language !== "python") return; // npm ci is exact or fails
  const wanted = pinnedPackages(join(folder, "requirements.txt"));
  const found = await packagesOf(system, { folder, interpreter: interpreterIn(system, folder) }, env);
  const present = Object.fromEntries(
    Object.keys(wanted).flatMap((name) => (name in found ? [[name, found[name] ?? ""]] : [])),
  );
  const [first] = packageDifferences(wanted, present);
  if (first === undefined) return;
  throw new RootstepError("INSTALL_FAILED", {
    what: `the lock and what was installed differ: ${first}`,
    where: folder,
  });
}
