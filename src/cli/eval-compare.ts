import { existsSync, readdirSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { EXIT, RootstepError } from "../errors.ts";
import type { ComparedRun } from "../evaluation/comparison.ts";
import { comparisonCsv, comparisonMarkdown } from "../report/comparison-files.ts";
import { comparisonHtml } from "../report/comparison-html.ts";
import { comparisonText } from "../report/comparison-table.ts";
import { writeAtomically } from "../runs/run-folder.ts";
import { type CommandContext, optionalString, plainCommand } from "./command.ts";
import { comparison, dataLoader, readEvalManifest, scoreRun } from "./eval-folder.ts";

/** `eval compare`: runs beside each other, paired on the logs they share, with floors and published results. */
export const evalCompare = plainCommand({
  name: "eval compare",
  describe: "compare run folders: paired tests, floors, published results, cost",
  arguments: [
    { name: "folders", describe: "run folders, or a matrix's folder", type: "array", positional: true, required: true },
    { name: "baseline", describe: "the run to compare with, by folder or name [default: the first]", type: "string" },
    { name: "out", describe: "folder for comparison.md, .csv, .json and .html", type: "string" },
    { name: "references", describe: "published results; --no-references leaves them out", type: "boolean" },
    { name: "force", describe: "compare runs whose data differs from what lies there now; marked", type: "boolean" },
  ],
  examples: ["eval compare runs/all-at-once runs/tracer --baseline runs/all-at-once --out runs/comparison"],
  async run(_, args, context) {
    const given = Array.isArray(args.folders) ? args.folders.map(String) : [];
    const folders = runFolders(given);
    if (folders.length === 0) {
      throw new RootstepError("USAGE", { what: "no run folder is named", where: "eval compare" });
    }
    const load = dataLoader();
    const names = namesOf(folders);
    const runs: ComparedRun[] = [];
    const seeds: number[] = [];
    for (const [position, path] of folders.entries()) {
      const read = readEvalManifest(path);
      const { run } = scoreRun(path, read, await load(read.settings), args.force === true);
      runs.push({ ...run, name: names[position] ?? run.name });
      seeds.push(read.settings.seed);
    }
    const wanted = optionalString(args, "baseline");
    const baseline = wanted === undefined ? undefined : baselineName(wanted, folders, names);
    await printComparison(
      runs,
      { seed: seeds[0] ?? 0, baseline, out: optionalString(args, "out"), references: args.references !== false },
      context,
    );
    return EXIT.ok;
  },
});

/** Compares, prints the tables and writes the files where a folder is given. */
export async function printComparison(
  runs: readonly ComparedRun[],
  settings: {
    readonly seed: number;
    readonly baseline?: string | undefined;
    readonly out?: string | undefined;
    readonly references?: boolean;
  },
  context: CommandContext,
): Promise<void> {
  const compared = await comparison(runs, settings);
  const { out } = settings;
  const files = {
    "comparison.md": comparisonMarkdown(compared),
    "comparison.csv": comparisonCsv(compared),
    "comparison.json": `${JSON.stringify(compared, null, 2)}\n`,
    "comparison.html": comparisonHtml(compared, "Failure attribution: comparison"),
  };
  if (out !== undefined) for (const [name, content] of Object.entries(files)) writeAtomically(join(out, name), content);
  const written = out === undefined ? [] : [`written to ${join(out, "comparison")}.{md,csv,json,html}`];
  context.print(compared, [comparisonText(compared), ...written].join("\n"));
}

/** Run folders as they are; of a folder of run folders (a matrix) those in it, by name. */
function runFolders(given: readonly string[]): string[] {
  return given.flatMap((path) => {
    if (existsSync(join(path, "manifest.json")) || !existsSync(path)) return [path];
    const inside = readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && existsSync(join(path, entry.name, "manifest.json")))
      .map((entry) => join(path, entry.name))
      .sort();
    return inside.length > 0 ? inside : [path];
  });
}

/** The last part of each path; the whole path where two would be the same. */
function namesOf(folders: readonly string[]): string[] {
  const bases = folders.map((path) => basename(path));
  return folders.map((path, position) => {
    const base = bases[position] ?? path;
    return bases.filter((other) => other === base).length === 1 ? base : path;
  });
}

function baselineName(wanted: string, folders: readonly string[], names: readonly string[]): string {
  const position = folders.findIndex((path, at) => names[at] === wanted || relative(path, wanted) === "");
  const name = names[position];
  if (name !== undefined) return name;
  throw new RootstepError("UNKNOWN_NAME", {
    what: `the baseline ${wanted} is none of the runs compared: ${names.join(", ")}`,
    where: "argument --baseline",
  });
}
