import type { PairedComparison } from "../evaluation/compare.ts";
import { COMPARED, type ComparedRow, type Comparison } from "../evaluation/comparison.ts";
import { cellLines, kindText, legend, moneyText, pairedLines, referenceText, tokensText } from "./comparison-cells.ts";

/** The comparison as Markdown: a table per subset with every row and column. */
export function comparisonMarkdown(comparison: Comparison): string {
  const sections = comparison.groups.map((group) => {
    const header = [
      "",
      "kind",
      "model",
      "G",
      ...COMPARED.map(({ title }) => title),
      "calls",
      "prompt tokens",
      "completion tokens",
      "money",
      "seconds",
      "frontier",
      "Δ step",
      "Δ agent",
      "source, remarks",
    ];
    const lines = group.rows.map((row) => tableLine(markdownCells(row, group.baseline)));
    return [`## ${group.name}`, "", tableLine(header), tableLine(header.map(() => "---")), ...lines].join("\n");
  });
  return `${[
    "# Comparison",
    "",
    ...comparison.notes.map((note) => `- ${escapeMarkdown(note)}`),
    ...(comparison.notes.length > 0 ? [""] : []),
    sections.join("\n\n"),
    "",
    ...legend().map((line) => `- ${line}`),
  ].join("\n")}\n`;
}

function markdownCells(row: ComparedRow, baseline: string): string[] {
  const { cost, paired } = row;
  return [
    row.name,
    kindText(row),
    row.model ?? "",
    referenceText(row),
    ...COMPARED.map(({ id }) => (row.cells[id] === undefined ? "" : cellLines(row.cells[id]).join(" "))),
    ...(cost === null
      ? ["", "", "", "", "", ""]
      : [
          String(cost.calls),
          tokensText(cost.promptTokens, cost),
          tokensText(cost.completionTokens, cost),
          moneyText(cost),
          cost.seconds.toFixed(1),
          row.frontier === true ? "★" : "",
        ]),
    paired === null
      ? row.kind === "measured" && row.name === baseline
        ? "baseline"
        : ""
      : pairedLines(paired.step).join(" "),
    paired === null ? "" : pairedLines(paired.agent).join(" "),
    remarks(row),
  ];
}

/** Source and remarks of a row, the number of predictions where some are missing. */
export function remarks(row: ComparedRow): string {
  const partial = row.counted !== null && row.planned !== null && row.counted < row.planned;
  return [
    partial ? `${row.counted} of ${row.planned} predictions` : "",
    row.source ?? "",
    row.seenInSource === false ? "value from a later overview" : "",
    row.detail,
  ]
    .filter((part) => part !== "")
    .join("; ");
}

const tableLine = (cells: readonly string[]): string => `| ${cells.map(escapeMarkdown).join(" | ")} |`;

function escapeMarkdown(text: string): string {
  return text.replace(/[\\|`*_<>[\]]/gu, (character) => `\\${character}`).replace(/\s*\n\s*/gu, " ");
}

/** The comparison as CSV (RFC 4180): a line per subset and row; shares as fractions of 1, empty where there is no value. */
export function comparisonCsv(comparison: Comparison): string {
  const header = [
    ...["group", "kind", "name", "method", "model", "reference", "predictions", "planned"],
    ...COMPARED.flatMap(({ id }) => [id, `${id}_low`, `${id}_high`, `${id}_n`, `${id}_below_floor`]),
    ...["calls", "prompt_tokens", "completion_tokens", "without_usage", "money", "seconds", "frontier"],
    ...["step", "agent"].flatMap((column) =>
      ["difference", "low", "high", "pairs", "only_here", "only_baseline", "p"].map(
        (part) => `vs_baseline_${column}_${part}`,
      ),
    ),
    ...["baseline", "source", "seen_in_source", "detail"],
  ];
  const lines = comparison.groups.flatMap((group) =>
    group.rows.map((row) => [
      ...[group.name, row.kind, row.name, row.method, row.model, row.reference, row.counted, row.planned],
      ...COMPARED.flatMap(({ id }) => {
        const cell = row.cells[id];
        return [cell?.value, cell?.low, cell?.high, cell?.n, cell?.belowFloor];
      }),
      ...[row.cost?.calls, row.cost?.promptTokens, row.cost?.completionTokens, row.cost?.withoutUsage],
      ...[row.cost?.money, row.cost?.seconds, row.frontier],
      ...pairedFields(row.paired?.step),
      ...pairedFields(row.paired?.agent),
      ...[group.baseline, row.source, row.seenInSource, row.detail],
    ]),
  );
  return [header, ...lines].map((line) => `${line.map(csvField).join(",")}\r\n`).join("");
}

function pairedFields(paired: PairedComparison | undefined): (number | undefined)[] {
  if (paired === undefined) return Array.from({ length: 7 }, () => undefined);
  const { difference, pairs, mcNemar } = paired;
  return [
    difference.mean,
    difference.interval.low,
    difference.interval.high,
    pairs,
    mcNemar?.onlyFirst,
    mcNemar?.onlySecond,
    mcNemar?.pValue,
  ];
}

function csvField(value: string | number | boolean | null | undefined): string {
  if (value === null || value === undefined) return "";
  const text = String(value);
  return /[",\r\n]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
