import { FAILURE_FEATURES } from "../../synth/dataset/failure-features.ts";
import { readForStats } from "../../synth/dataset/read-for-stats.ts";
import {
  type Counts,
  compareData,
  type DataComparison,
  type DataStats,
  dataStats,
  type Spread,
} from "../../synth/dataset/stats.ts";
import { EXIT, RootstepError } from "../errors.ts";
import { textTable } from "../report/table.ts";
import { optionalNumber, optionalString, plainCommand } from "./command.ts";

/** `data stats`: what a set of runs is like, and how its failures differ from those of another. */
export const dataStatsCommand = plainCommand({
  name: "data stats",
  describe: "counts, lengths, label positions, agents and verdicts of a file or dataset; with --compare of two",
  arguments: [
    { name: "path", describe: "file or folder", type: "string", positional: true },
    { name: "compare", describe: "two files or folders, e.g. synthetic and real failures", type: "array" },
    { name: "seed", describe: "seed of folds and bootstrap [default: 1]", type: "number" },
  ],
  examples: ["data stats runs/gsm8k", "data stats --compare runs/gsm8k data/who_and_when --json"],
  async run(_, args, context) {
    const path = optionalString(args, "path");
    if (args.compare !== undefined) {
      const [first, second, ...more] = Array.isArray(args.compare) ? args.compare.map(String) : [];
      if (first === undefined || second === undefined || more.length > 0 || path !== undefined) {
        throw new RootstepError("USAGE", {
          what: "--compare takes two files or folders, and nothing stands before it",
        });
      }
      const [a, b] = await Promise.all([readForStats(first), readForStats(second)]);
      const comparison = compareData(a, b, optionalNumber(args, "seed") ?? 1);
      context.print(comparison, renderComparison(comparison));
      return EXIT.ok;
    }
    if (path === undefined) throw new RootstepError("USAGE", { what: "no file or folder is named" });
    const stats = dataStats(await readForStats(path));
    context.print(stats, renderStats(stats));
    return EXIT.ok;
  },
});

const number = (value: number): string => (Number.isInteger(value) ? String(value) : value.toPrecision(3));
const counts = (of: Counts): string =>
  Object.entries(of)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ") || "–";
const middle = (spread: Spread | null | undefined): string =>
  spread === null || spread === undefined
    ? "–"
    : `${number(spread.median)} [${number(spread.q25)}, ${number(spread.q75)}]`;
const EDIT_TITLE = "characters changed by the correction";

function countRows(stats: DataStats): string[][] {
  return [
    ["records", `${stats.records}, ${stats.badRecords} unreadable`],
    ["failed runs", `${stats.failed}, ${stats.labelledFailures} with a label in the log`],
    ["simulated", String(stats.simulated)],
    ["task groups", String(stats.taskGroups)],
    ["systems", counts(stats.systems)],
    ["tasks", counts(stats.tasks)],
    ["labels", counts(stats.labels)],
    ["blamed agents", counts(stats.blamedAgents)],
    ["symptom classes", counts(stats.symptoms)],
  ];
}

function renderStats(stats: DataStats): string {
  const row = (title: string, spread: Spread | null | undefined): string[] => [
    title,
    middle(spread),
    ...(spread ? [number(spread.least), number(spread.most), number(spread.mean)] : ["–", "–", "–"]),
  ];
  return [
    [stats.name, ...countRows(stats).map(([title, value]) => `  ${title}: ${value}`)].join("\n"),
    textTable(
      "Labelled failures",
      ["", "median [quartiles]", "least", "most", "mean"],
      [...FAILURE_FEATURES.map(({ id, title }) => row(title, stats.features[id])), row(EDIT_TITLE, stats.editSize)],
    ),
  ].join("\n\n");
}

function renderComparison({ first, second, featureAuc, editSizeAuc, classifier }: DataComparison): string {
  const share = (value: number | null | undefined): string =>
    value === null || value === undefined ? "–" : value.toFixed(3);
  const [a, b] = [countRows(first), countRows(second)];
  return [
    textTable(
      "A against B",
      ["", "A", "B"],
      [["", first.name, second.name], ...a.map(([title = "", value = ""], at) => [title, value, b[at]?.[1] ?? ""])],
    ),
    textTable(
      "Labelled failures: median [quartiles]; AUC = P(B's value is the larger)",
      ["", "A", "B", "AUC"],
      [
        ...FAILURE_FEATURES.map(({ id, title }) => [
          title,
          middle(first.features[id]),
          middle(second.features[id]),
          share(featureAuc[id]),
        ]),
        [EDIT_TITLE, middle(first.editSize), middle(second.editSize), share(editSizeAuc)],
      ],
    ),
    classifier === null
      ? "No classifier: a set has labelled failures of fewer than two task groups."
      : `A logistic regression on these features (without the edit) tells A from B with AUC ${classifier.auc.toFixed(3)} ` +
        `[${classifier.interval.low.toFixed(3)}, ${classifier.interval.high.toFixed(3)}], ${classifier.folds}-fold, ` +
        `n = ${classifier.n.first} and ${classifier.n.second}; .5 = not at all.`,
  ].join("\n\n");
}
