import { injectionOperators } from "../../synth/inject/registry.ts";
import { searchStrategies } from "../../synth/search/registry.ts";
import { installed } from "../../synth/systems/installation.ts";
import type { ProgramSystem } from "../../synth/systems/program-system.ts";
import { programSystems, systems } from "../../synth/systems/registry.ts";
import { taskSets } from "../../synth/tasks/registry.ts";
import { EXIT } from "../errors.ts";
import { formats } from "../formats/registry.ts";
import { METHODS } from "../methods/registry.ts";
import { textTable } from "../report/table.ts";
import { type CommandContext, optionalString, plainCommand } from "./command.ts";

interface Named {
  readonly id: string;
  readonly title: string;
  /** Of a system that runs as a program: whether it can be run here, and what to do where not. */
  readonly state?: string;
}

const name = ({ id, title }: Named): Named => ({ id, title });

/** What can be named on the command line, by kind. */
const KINDS: Readonly<Record<string, readonly Named[]>> = {
  systems: systems.map((system) => ({ ...name(system), state: "in process" })),
  tasks: taskSets.map(name),
  strategies: searchStrategies.map(name),
  operators: injectionOperators.map(name),
  methods: METHODS.map(name),
  formats: formats.map(name),
  models: [
    { id: "simulator", title: "rootstep's fallible simulator, offline" },
    { id: "openai-compatible", title: "any OpenAI-compatible server: vLLM, hosted or local" },
    { id: "hugging-face", title: "Hugging Face router or a self-hosted endpoint" },
  ],
  engines: [{ id: "embedded", title: "tiny transformer in process on ONNX Runtime, no Python" }],
};

/** With the program systems, as they are on this machine. */
function kindsHere(env: CommandContext["env"]): Readonly<Record<string, readonly Named[]>> {
  const here = (system: ProgramSystem): Named => {
    const found = installed(system, env);
    return { ...name(system), state: found.state === "installed" ? "installed" : `missing: ${found.do}` };
  };
  return { ...KINDS, systems: [...(KINDS.systems ?? []), ...programSystems.map(here)] };
}

/** `list [kind]`: the names to use in settings. */
export const list = plainCommand({
  name: "list",
  describe: "list systems, tasks, strategies, operators, methods, formats, models and engines",
  arguments: [
    { name: "kind", describe: "only this kind", type: "string", positional: true, choices: Object.keys(KINDS) },
  ],
  async run(_, args, context) {
    const kind = optionalString(args, "kind");
    const kinds = kindsHere(context.env);
    const shown = kind === undefined ? kinds : { [kind]: kinds[kind] ?? [] };
    const tables = Object.entries(shown).map(([title, entries]) => {
      const hasState = entries.some(({ state }) => state !== undefined);
      return textTable(
        title,
        ["name", "what it is", ...(hasState ? ["here"] : [])],
        entries.map(({ id, title: what, state }) => [id, what, ...(hasState ? [state ?? ""] : [])]),
      );
    });
    context.print(shown, tables.join("\n\n"));
    return EXIT.ok;
  },
});
