import type { z } from "zod";
import type { ExitCode } from "../errors.ts";
import type { Progress } from "../runs/progress.ts";

/** What a command may touch of the world. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => Date;
  readonly signal: AbortSignal;
  /** Progress and remarks go to standard error, so that standard output holds results only. */
  readonly progress: Progress;
  /** True with --json: results are JSON, one document on standard output. */
  readonly json: boolean;
  /** True with --dry-run: say what would be done, do nothing. */
  readonly dryRun: boolean;
  /** rootstep's version. */
  readonly version: string;
  /** Prints a result: `text` for people, `value` with --json. */
  print(value: unknown, text: string): void;
  /** Prints one of many results as they come: a line of text, with --json a line of JSON. */
  printLine(value: unknown, text: string): void;
}

/** An argument or flag that is not a setting: a path to read or write, a switch of one call. */
export interface Argument {
  readonly name: string;
  readonly describe: string;
  readonly type: "string" | "boolean" | "number" | "array";
  readonly required?: boolean;
  /** Positional arguments are given without a flag. */
  readonly positional?: boolean;
  readonly choices?: readonly string[];
}

export type Arguments = Readonly<Record<string, unknown>>;

/** One verb (or verb and sub-verb) of the command line. */
export interface Command<T> {
  /** `list`, `synth run`, … */
  readonly name: string;
  readonly describe: string;
  /** Settings: YAML < environment < flags. Absent where a command has arguments only. */
  readonly schema?: z.ZodType<T>;
  readonly arguments?: readonly Argument[];
  /** True where --dry-run is offered. */
  readonly plans?: boolean;
  readonly examples?: readonly string[];
  run(settings: T, args: Arguments, context: CommandContext): Promise<ExitCode | undefined>;
}

/** A command whatever its settings are: what the command line keeps in its list. */
export interface AnyCommand extends Omit<Command<unknown>, "run" | "schema"> {
  readonly schema?: z.ZodType<unknown>;
  /** Parses nothing: loads the configuration by its own schema and runs. */
  start(load: <S>(schema: z.ZodType<S>) => S, args: Arguments, context: CommandContext): Promise<ExitCode | undefined>;
}

/** Ties a command's settings to its schema, so that the list of commands needs no casts. */
export function command<T>(definition: Command<T> & { readonly schema: z.ZodType<T> }): AnyCommand {
  const { run, ...rest } = definition;
  return { ...rest, start: (load, args, context) => run(load(definition.schema), args, context) };
}

/** A command without settings. */
export function plainCommand(definition: Omit<Command<undefined>, "schema">): AnyCommand {
  const { run, ...rest } = definition;
  return { ...rest, start: (_load, args, context) => run(undefined, args, context) };
}

/** A string argument. @throws TypeError if the command line let it through missing */
export function stringArgument(args: Arguments, name: string): string {
  const value = args[name];
  if (typeof value !== "string") throw new TypeError(`argument ${name} is missing`);
  return value;
}

export function optionalString(args: Arguments, name: string): string | undefined {
  const value = args[name];
  return typeof value === "string" ? value : undefined;
}

export function optionalNumber(args: Arguments, name: string): number | undefined {
  const value = args[name];
  return typeof value === "number" ? value : undefined;
}
