import { isDatasetFolder } from "../../synth/dataset/folder.ts";
import { validateDataset } from "../../synth/dataset/validate.ts";
import { EXIT } from "../errors.ts";
import { auditWhoAndWhen } from "../formats/audit.ts";
import { renderAudit } from "../formats/render-audit.ts";
import { type Validation, validateFile } from "../formats/validate.ts";
import { shippedPath } from "../package-root.ts";
import { optionalString, plainCommand, stringArgument } from "./command.ts";
import { isTape, printTapeValidation } from "./validate-tape.ts";

/** `data audit`: what the Who&When files really hold. */
export const dataAudit = plainCommand({
  name: "data audit",
  describe: "report what a Who&When folder holds: labels, speakers, duplicates, lengths",
  arguments: [{ name: "folder", describe: "default: the copy that ships", type: "string", positional: true }],
  examples: ["data audit data/who_and_when"],
  async run(_, args, context) {
    const report = await auditWhoAndWhen(optionalString(args, "folder") ?? shippedPath("data", "who_and_when"));
    context.print(report, renderAudit(report));
    return EXIT.ok;
  },
});

/** `data validate`: every fault of a file with its place; exit code 1 if there is one. */
export const dataValidate = plainCommand({
  name: "data validate",
  describe: "read a file, folder, dataset or tape and list every fault with file:line and field",
  arguments: [
    { name: "path", describe: "file or folder", type: "string", positional: true, required: true },
    { name: "format", describe: "format of the file; default: detected", type: "string" },
  ],
  examples: ["data validate runs/demo/dataset", "data validate runs.jsonl", "data validate tapes/one"],
  async run(_, args, context) {
    const [path, format] = [stringArgument(args, "path"), optionalString(args, "format")];
    if (format === undefined && isTape(path)) return printTapeValidation(path, context);
    const isDataset = format === undefined && isDatasetFolder(path);
    const validation = isDataset ? await validateDataset(path) : await validateFile(path, format);
    context.print(validation, renderValidation(validation));
    return validation.faults.length === 0 ? EXIT.ok : EXIT.failed;
  },
});

function renderValidation({ format, records, badRecords, faults, inconsistencies, losses }: Validation): string {
  return [
    `${format}: ${records} good records, ${badRecords} bad`,
    ...faults.map((fault) => `  ${fault.where} ${fault.path}: ${fault.message} [${fault.code}]`.replace(" :", ":")),
    ...inconsistencies.map((found) => `  note ${found.where} ${found.path}: ${found.message}`),
    ...losses.map((loss) => `  not kept: ${loss.field} (${loss.count}): ${loss.why}`),
  ].join("\n");
}
