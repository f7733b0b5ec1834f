import { injectionOperators } from "../../synth/inject/registry.ts";
import { searchStrategies } from "../../synth/search/registry.ts";
import { systems } from "../../synth/systems/registry.ts";
import { taskSets } from "../../synth/tasks/registry.ts";
import { EXIT } from "../errors.ts";
import { formats } from "../formats/registry.ts";
import { METHODS } from "../methods/registry.ts";
import { textTable } from "../report/table.ts";
import { optionalString, plainCommand } from "./command.ts";

interface Named {
  readonly id: string;
  readonly title: string;
}

const name = ({ id, title }: Named): Named => ({ id, title });

/** What can be named on the command line, by kind. */
const KINDS: Readonly<Record<string, readonly Named[]>> = {
  systems: systems.map(name),
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

/** `list [kind]`: the names to use in settings. */
export const list = plainCommand({
  name: "list",
  describe: "list systems, tasks, strategies, operators, methods, formats, models and engines",
  arguments: [
    { name: "kind", describe: "only this kind", type: "string", positional: true, choices: Object.keys(KINDS) },
  ],
  async run(_, args, context) {
    const kind = optionalString(args, "kind");
    const shown = kind === undefined ? KINDS : { [kind]: KINDS[kind] ?? [] };
    const tables = Object.entries(shown).map(([title, entries]) =>
      textTable(
        title,
        ["name", "what it is"],
        entries.map(({ id, title: what }) => [id, what]),
      ),
    );
    context.print(shown, tables.join("\n\n"));
    return EXIT.ok;
  },
});
