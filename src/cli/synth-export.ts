import { EXPORT_TARGETS, type Exported, type ExportTarget, exportDataset } from "../../synth/dataset/export.ts";
import { EXIT, RootstepError } from "../errors.ts";
import { DEFAULT_LOG_BUDGET } from "../methods/tracer/tracer.ts";
import { type Arguments, optionalNumber, plainCommand, stringArgument } from "./command.ts";

/** `synth export`: a dataset in the form that another tool reads. */
export const synthExport = plainCommand({
  name: "synth export",
  describe: "write a dataset as Parquet, for the Hugging Face hub, as ShareGPT or OpenAI chats, or like Who&When",
  arguments: [
    { name: "folder", describe: "run folder or dataset folder", type: "string", positional: true, required: true },
    {
      name: "to",
      describe: "the form; verl jobs are made by `rootstep train export-verl`",
      type: "string",
      required: true,
      choices: EXPORT_TARGETS,
    },
    { name: "out", describe: "a new folder", type: "string", required: true },
    { name: "log-budget", describe: `characters of log in a chat [default: ${DEFAULT_LOG_BUDGET}]`, type: "number" },
  ],
  examples: [
    "synth export runs/gsm8k --to huggingface --out hub/gsm8k",
    "synth export runs/gsm8k --to sharegpt --out chats",
  ],
  async run(_, args, context) {
    const exported = await exportDataset({
      from: stringArgument(args, "folder"),
      to: targetOf(args),
      out: stringArgument(args, "out"),
      logBudget: optionalNumber(args, "log-budget") ?? DEFAULT_LOG_BUDGET,
    });
    context.print(exported, renderExported(exported));
    return EXIT.ok;
  },
});

function targetOf(args: Arguments): ExportTarget {
  const given = stringArgument(args, "to");
  const known = EXPORT_TARGETS.find((target) => target === given);
  if (known === undefined) throw new RootstepError("USAGE", { what: `there is no form "${given}"`, where: "--to" });
  return known;
}

function renderExported({ to, out, written, leftOut, losses }: Exported): string {
  return [
    `${to}: ${written.train} train and ${written.test} test records in ${out}`,
    ...Object.entries(leftOut).map(([reason, count]) => `  left out: ${count} (${reason})`),
    ...losses.map((loss) => `  not kept: ${loss.field} (${loss.count}): ${loss.why}`),
  ].join("\n");
}
