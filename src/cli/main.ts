import { readFileSync } from "node:fs";
import { parse as parseYaml } from "yaml";
import yargs, { type Argv } from "yargs";
import { asRootstepError, describeError, EXIT, type ExitCode, RootstepError } from "../errors.ts";
import { shippedPath } from "../package-root.ts";
import { environmentName, flagName, loadConfig, type Setting, setPath, settingsOf } from "../runs/config.ts";
import { interruptSignal } from "../runs/interrupt.ts";
import { createProgress, silentProgress } from "../runs/progress.ts";
import type { AnyCommand, Arguments, CommandContext } from "./command.ts";
import { commandsFor } from "./commands.ts";

/** Where a call of the command line reads and writes. */
export interface World {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => Date;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

const PARSER = {
  "camel-case-expansion": false,
  "dot-notation": false,
  "duplicate-arguments-array": false,
  "parse-positional-numbers": false, // `-- python3 app.py 007` is passed on as it is
} as const;

/** Runs one command line. @returns its exit code; errors are printed, never thrown. */
export async function main(argv: readonly string[], world: World): Promise<ExitCode> {
  let exit: ExitCode = EXIT.ok;
  const say = (line: string): void => void world.stderr.write(`${line}\n`);
  const json = argv.includes("--json");
  const interrupt = interruptSignal(say);
  const cli = yargs([...argv])
    .scriptName("rootstep")
    .usage("$0 <verb> [options]\n\nWhich agent and which step broke a failed multi-agent run.")
    .version(version())
    .help()
    .strict()
    .demandCommand(1, "Name a verb.")
    .recommendCommands()
    .wrap(Math.min(120, world.stderr.columns ?? 120))
    .exitProcess(false)
    .parserConfiguration(PARSER)
    .option("json", { type: "boolean", describe: "results as one JSON document; no progress" })
    .fail((message, error) => {
      throw error ?? new RootstepError("USAGE", { what: message.replace(/\n+/gu, " "), where: argv.join(" ") });
    });
  const run = async (command: AnyCommand, parsed: Arguments): Promise<void> => {
    const context: CommandContext = {
      env: world.env,
      now: world.now,
      signal: interrupt.signal,
      progress: json ? silentProgress : createProgress({ output: world.stderr, now: () => performance.now() }),
      json,
      dryRun: parsed["dry-run"] === true,
      version: version(),
      print: (value, text) => void world.stdout.write(json ? `${JSON.stringify(value, null, 2)}\n` : `${text}\n`),
      printLine: (value, text) => void world.stdout.write(`${json ? JSON.stringify(value) : text}\n`),
    };
    const settings = command.schema === undefined ? [] : settingsOf(command.schema);
    const load: Parameters<AnyCommand["start"]>[0] = (schema) =>
      loadConfig(schema, {
        verb: verbOf(command),
        file: typeof parsed.config === "string" ? parsed.config : undefined,
        env: world.env,
        flags: flagsOf(settings, parsed),
      });
    exit = (await command.start(load, parsed, context)) ?? EXIT.ok;
  };
  try {
    if (argv[0] !== "--version") addCommands(cli, await commandsFor(argv), run);
    await cli.parseAsync();
  } catch (thrown) {
    const error = asRootstepError(thrown);
    say(json ? JSON.stringify(errorDocument(error)) : describeError(error));
    if (error.code === "INTERNAL" && error.cause instanceof Error && !json) say(error.cause.stack ?? "");
    exit = error.exit;
  } finally {
    interrupt.dispose();
  }
  return exit;
}

/** Registers `synth run` as sub-command `run` of `synth`, `list` as itself. */
function addCommands(
  cli: Argv,
  all: readonly AnyCommand[],
  run: (command: AnyCommand, args: Arguments) => Promise<void>,
): void {
  const verbs = new Map<string, AnyCommand[]>();
  for (const command of all) verbs.set(verbOf(command), [...(verbs.get(verbOf(command)) ?? []), command]);
  for (const [verb, members] of verbs) {
    const [only] = members;
    if (only !== undefined && members.length === 1 && only.name === verb) {
      addOne(cli, only, verb, run);
      continue;
    }
    const describe = members.map((member) => member.name.slice(verb.length + 1)).join(" | ");
    cli.command(verb, describe, (group) => {
      for (const member of members) addOne(group, member, member.name.slice(verb.length + 1), run);
      return group.demandCommand(1, `Name what to ${verb}.`).strict();
    });
  }
}

function addOne(
  cli: Argv,
  command: AnyCommand,
  word: string,
  run: (command: AnyCommand, args: Arguments) => Promise<void>,
): void {
  const positionals = (command.arguments ?? []).filter((argument) => argument.positional === true);
  const usage = [
    word,
    ...positionals.map(({ name, required, type }) => {
      const shown = type === "array" ? `${name}..` : name;
      return required === true ? `<${shown}>` : `[${shown}]`;
    }),
  ].join(" ");
  cli.command(
    usage,
    command.describe,
    (builder) => {
      const lists = positionals.some(({ type }) => type === "array");
      // yargs hands a positional list over as one flag per word, and would keep the last word only.
      if (lists) builder.parserConfiguration({ ...PARSER, "duplicate-arguments-array": true });
      for (const argument of command.arguments ?? []) {
        const { name, describe, type, choices } = argument;
        const last = lists && type !== "array" ? { coerce: lastGiven } : {};
        const options = { describe, type, ...(choices === undefined ? {} : { choices: [...choices] }), ...last };
        if (argument.positional === true && type !== "array") builder.positional(name, { ...options, type });
        else if (argument.positional === true) builder.positional(name, { describe, array: true, type: "string" });
        else
          builder.option(name, {
            ...options,
            demandOption: argument.required === true,
            requiresArg: type !== "boolean",
          });
      }
      if (command.schema !== undefined) {
        builder.option("config", { type: "string", requiresArg: true, describe: "YAML file with the settings below" });
        for (const setting of settingsOf(command.schema))
          builder.option(flagName(setting.path), flagOf(command, setting));
      }
      if (command.plans === true) {
        builder.option("dry-run", {
          type: "boolean",
          describe: "print the plan with calls, tokens and cost; do nothing",
        });
      }
      for (const example of command.examples ?? []) builder.example(`$0 ${example}`, "");
      return builder.strict();
    },
    (parsed) => run(command, parsed),
  );
}

/** Of a flag given twice the last one counts. */
const lastGiven = (given: unknown): unknown => (Array.isArray(given) ? given.at(-1) : given);

function verbOf(command: AnyCommand): string {
  return command.name.split(" ")[0] ?? command.name;
}

function flagOf(command: AnyCommand, setting: Setting) {
  const fallback = setting.default === undefined ? "" : ` [default: ${JSON.stringify(setting.default)}]`;
  const describe = `${setting.description ?? ""}${fallback} (${environmentName(verbOf(command), setting.path)})`.trim();
  return {
    describe,
    group: "Settings (YAML < environment < flags):",
    requiresArg: setting.type !== "boolean",
    ...(setting.choices !== undefined && setting.choices.length > 0 ? { choices: [...setting.choices] } : {}),
    ...(setting.type === "object" ? { type: "string" as const } : { type: setting.type }),
  };
}

/** The settings given as flags, nested as the schema is. Objects are written as YAML or JSON. */
function flagsOf(settings: readonly Setting[], parsed: Arguments): Record<string, unknown> {
  const flags: Record<string, unknown> = {};
  for (const { path, type } of settings) {
    const given = parsed[flagName(path)];
    if (given === undefined) continue;
    setPath(flags, path, type === "object" && typeof given === "string" ? parseYaml(given) : given);
  }
  return flags;
}

function errorDocument(error: RootstepError): unknown {
  const { code, what, where, side, hint, exit } = error;
  return { error: { code, what, where, side, hint, exit } };
}

function version(): string {
  const manifest: { version: string } = JSON.parse(readFileSync(shippedPath("package.json"), "utf8"));
  return manifest.version;
}
