import { existsSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { type PreloadOptions, preloadEnvironment } from "../../synth/determinism/preload.ts";
import { requireInstalled } from "../../synth/systems/installation.ts";
import { nodePackages, type PackageVersions, pythonPackages } from "../../synth/systems/packages.ts";
import { programSystemById } from "../../synth/systems/registry.ts";
import { type SystemTask, systemProgram, systemTask } from "../../synth/systems/system-program.ts";
import type { TapedProgram, TapeHeader } from "../../synth/tape/folder-schema.ts";
import { taskSetById } from "../../synth/tasks/registry.ts";
import type { TaskSet } from "../../synth/tasks/task-set.ts";
import { RootstepError } from "../errors.ts";
import type { Outcome, Task } from "../trajectory/schema.ts";
import { type Argument, type Arguments, type CommandContext, optionalString } from "./command.ts";

/** What `record` and `replay` run behind the proxy. */
export interface ProgramToRun {
  readonly command: readonly string[];
  readonly env: CommandContext["env"];
  /** What the tape says of it. */
  readonly program: TapedProgram;
  /** Seconds, where the system has a limit of its own. */
  readonly timeLimit: number | undefined;
  readonly masks: boolean;
  readonly idPatterns: readonly string[] | undefined;
}

export const SYSTEM_FLAGS: readonly Argument[] = [
  { name: "system", describe: "run this system (`rootstep list systems`) instead of a command", type: "string" },
  { name: "task", describe: "the system's task, SET:ID: gsm8k:test-0001", type: "string" },
  { name: "model", describe: "name of the model that the system asks for", type: "string" },
  {
    name: "preload",
    describe: "stop clocks and seed ids and random numbers of Python and Node programs (default: as the system needs)",
    type: "boolean",
  },
];

/** The program that the flags, or what stands after `--`, name for a new recording. */
export async function programToRecord(
  args: Arguments,
  given: readonly string[],
  context: CommandContext,
  run: { readonly name: string; readonly startedAt: Date },
): Promise<ProgramToRun> {
  const id = optionalString(args, "system");
  const wanted = typeof args.preload === "boolean" ? args.preload : undefined;
  const preload: PreloadOptions = { seed: run.name, at: run.startedAt.toISOString() };
  if (id === undefined) {
    for (const flag of ["task", "model"]) {
      if (args[flag] !== undefined) throw new RootstepError("USAGE", { what: `--${flag} goes with --system` });
    }
    return plainProgram(given, context, wanted === true ? preload : undefined);
  }
  if (given.length > 0) {
    throw new RootstepError("USAGE", { what: "--system names the program: nothing may stand after `--`" });
  }
  const system = programSystemById(id);
  const task = await taskNamed(needed(args, "task", "gsm8k:test-0001"));
  const model = needed(args, "model", "NAME");
  return systemToRun({ system: id, task, model, ...((wanted ?? system.preload === "needed") && { preload }) }, context);
}

/** The program of a tape, or the one that stands after `--` in its place. */
export function programToReplay(
  { program }: TapeHeader,
  given: readonly string[],
  context: CommandContext,
): Promise<ProgramToRun> {
  if (given.length > 0 || program?.system === undefined) return plainProgram(given, context, program?.preload);
  return systemToRun(program, context);
}

async function plainProgram(
  command: readonly string[],
  { env }: CommandContext,
  preload: PreloadOptions | undefined,
): Promise<ProgramToRun> {
  if (command.length === 0) {
    throw new RootstepError("USAGE", {
      what: "no program is named",
      hint: "Name the program after `--`, or a --system.",
    });
  }
  const program = { packages: await commandPackages(command, env), ...(preload && { preload }) };
  return { command, env: withPreload(env, preload), program, timeLimit: undefined, masks: true, idPatterns: undefined };
}

async function systemToRun(taped: Omit<TapedProgram, "packages">, { env }: CommandContext): Promise<ProgramToRun> {
  const { system: id = "", task, model } = taped;
  const system = programSystemById(id);
  if (task === undefined || model === undefined) {
    throw new RootstepError("TAPE_DAMAGED", { what: `the tape names the system ${id}, but not its task and model` });
  }
  const made = await systemProgram(system, requireInstalled(system, env), { task, model, env });
  return {
    command: made.command,
    env: withPreload(made.env, taped.preload),
    program: { ...taped, packages: made.packages },
    timeLimit: system.timeLimit,
    masks: system.masks,
    idPatterns: system.idPatterns,
  };
}

function withPreload(env: CommandContext["env"], preload: PreloadOptions | undefined): CommandContext["env"] {
  return preload === undefined ? env : { ...env, ...preloadEnvironment(preload, env) };
}

/** As far as a command tells: those of its Python, or those installed above its Node script. */
async function commandPackages(
  [file = "", ...rest]: readonly string[],
  env: CommandContext["env"],
): Promise<PackageVersions> {
  if (/^python[\d.]*$/u.test(basename(file))) return (await pythonPackages(file, env, process.cwd())) ?? {};
  const script = basename(file) === "node" ? rest.find((word) => !word.startsWith("-")) : file;
  if (script === undefined || !/\.[cm]?[jt]s$/u.test(script)) return {};
  for (let folder = dirname(resolve(script)); folder !== dirname(folder); folder = dirname(folder)) {
    if (existsSync(join(folder, "node_modules", ".package-lock.json"))) return nodePackages(folder);
  }
  return {};
}

/** `SET:ID`; the set's name may stand before the id once more: gsm8k:gsm8k-test-0001. */
async function taskNamed(name: string): Promise<SystemTask> {
  const [set = "", id = ""] = name.split(/:(.*)/su);
  if (id === "") throw new RootstepError("USAGE", { what: `"${name}" is no SET:ID`, where: "--task" });
  const tasks = await taskSetById(set).load({ seed: 1, limit: LARGEST_SET });
  const task = tasks.find((each) => each.id === id || each.id === `${set}-${id}`);
  if (task !== undefined) return systemTask(set, task);
  const first = tasks[0]?.id.replace(`${set}-`, "");
  throw new RootstepError("UNKNOWN_NAME", {
    what: `${set} has no task "${id}" among its ${tasks.length}`,
    where: "--task",
    hint: `Its first is ${set}:${first}.`,
  });
}

/** More than any shipped set holds; a generated one is as large as it is asked to be. */
const LARGEST_SET = 2000;

/** Whether that answer solves the tape's task; undefined where the tape has none. */
export async function outcomeOf(program: TapedProgram, answer: string | undefined): Promise<Outcome | undefined> {
  const found = await tapedTask(program);
  return found?.set.check(found.task, answer);
}

/** The tape's task with the set that checks it; undefined where the tape has none. */
export async function tapedTask({
  task,
}: TapedProgram): Promise<{ readonly set: TaskSet; readonly task: Task } | undefined> {
  if (task === undefined) return undefined;
  const set = taskSetById(task.set);
  const found = (await set.load({ seed: 1, limit: LARGEST_SET })).find(({ id }) => id === task.id);
  return found === undefined ? undefined : { set, task: found };
}

function needed(args: Arguments, flag: string, example: string): string {
  const value = optionalString(args, flag);
  if (value !== undefined) return value;
  throw new RootstepError("USAGE", { what: `--system needs --${flag} ${example}` });
}
