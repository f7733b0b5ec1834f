import {
  AXIS_TITLES,
  COMPARED,
  type ComparedGroup,
  type ComparedId,
  type ComparedRow,
  type Comparison,
} from "../evaluation/comparison.ts";
import { costPerPrediction } from "../evaluation/cost.ts";
import { cellLines, legend, moneyText, pairedLines, referenceText, rowsOf, tokensText } from "./comparison-cells.ts";
import { textTable } from "./table.ts";

const FIRST: readonly ComparedId[] = ["step", "agent", "both", "lateStep", "lateAgent", "parseFailures", "noStepNamed"];
const SECOND = COMPARED.map(({ id }) => id).filter((id) => !FIRST.includes(id));

/**
 * A comparison for the terminal: per subset the shares, the floors and the nearest published results, then what the runs
 * took and how they differ. Published rows beyond these are counted; the files of `--out` hold them all.
 */
export function comparisonText(comparison: Comparison): string {
  const tables = comparison.groups.flatMap((group) => [
    sharesTable(`${group.name}: percent [95%]`, group, FIRST, true),
    sharesTable(`${group.name}: near misses and the benchmark's own scorer`, group, SECOND, false),
    costTable(group),
  ]);
  const notes = comparison.notes.map((note) => `note: ${note}`);
  return [...tables, ...notes, ...legend()].join("\n");
}

function sharesTable(
  title: string,
  group: ComparedGroup,
  columns: readonly ComparedId[],
  withPublished: boolean,
): string {
  const has = (row: ComparedRow): boolean => columns.some((id) => row.cells[id] !== undefined);
  const published = rowsOf(group, "published").filter(has);
  const shown = withPublished ? nearest(group, published) : published;
  const rows = [...rowsOf(group, "measured"), ...rowsOf(group, "floor").filter(has), ...shown];
  const left = published.length - shown.length;
  const sources = [...new Set(shown.flatMap((row) => row.source ?? []))];
  const table = textTable(
    title,
    ["", ...columns.map((id) => COMPARED.find((column) => column.id === id)?.title ?? id)],
    rows.map((row) => [rowName(row, sources), ...columns.map((id) => cellLines(row.cells[id]).join("\n"))]),
  );
  return [
    table,
    ...sources.map((source, position) => `[${position + 1}] ${source}`),
    ...(left === 0 ? [] : [`${left} more published rows: in the files of --out`]),
  ].join("\n");
}

/** Published rows of the methods compared, the best one of each column, and what is no method: human agreement. */
function nearest(group: ComparedGroup, published: readonly ComparedRow[]): ComparedRow[] {
  const methods = new Set(rowsOf(group, "measured").map((row) => row.method));
  const best = FIRST.flatMap((id) => {
    const valued = published.filter((row) => row.method !== null && (row.cells[id]?.value ?? null) !== null);
    return valued.length === 0
      ? []
      : [valued.reduce((a, b) => ((b.cells[id]?.value ?? 0) > (a.cells[id]?.value ?? 0) ? b : a))];
  });
  return published.filter((row) => row.method === null || methods.has(row.method) || best.includes(row));
}

function rowName(row: ComparedRow, sources: readonly string[]): string {
  switch (row.kind) {
    case "measured": {
      const missing = row.counted !== null && row.planned !== null && row.counted < row.planned;
      return [
        `${row.name}${row.frontier === true ? " ★" : ""}`,
        `  ${[row.model, referenceText(row)].filter((part) => part !== null).join(", ")}`,
        ...(missing ? [`  ${row.counted} of ${row.planned}`] : []),
        ...(row.detail === "" ? [] : wrap(row.detail)),
      ].join("\n");
    }
    case "floor":
      return [`floor: ${row.name}`, ...(row.detail === "" ? [] : wrap(row.detail))].join("\n");
    case "published":
      return `published: ${row.label} [${sources.indexOf(row.source ?? "") + 1}]`;
  }
}

/** Cuts a remark into indented lines of a narrow column. */
function wrap(text: string): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines.at(-1) ?? "";
    if (last !== "" && last.length + word.length > 34) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines.map((line) => `  ${line}`);
}

function costTable(group: ComparedGroup): string {
  const { baseline } = group;
  const rows = rowsOf(group, "measured").flatMap((row) => {
    const { cost, paired } = row;
    if (cost === null) return [];
    const perLog = costPerPrediction(cost, group.costAxis);
    return [
      [
        `${row.name}${row.frontier === true ? " ★" : ""}`,
        String(cost.calls),
        tokensText(cost.promptTokens, cost),
        tokensText(cost.completionTokens, cost),
        moneyText(cost),
        cost.seconds.toFixed(1),
        perLog === null ? "–" : String(Number(perLog.toPrecision(4))),
        paired === null ? (row.name === baseline ? "baseline" : "nothing shared") : pairedLines(paired.step).join("\n"),
        paired === null ? "" : pairedLines(paired.agent).join("\n"),
      ],
    ];
  });
  return textTable(
    `${group.name}: cost, and difference to ${baseline} in percentage points`,
    ["", "calls", "prompt tokens", "completion", "money", "seconds", AXIS_TITLES[group.costAxis], "Δ step", "Δ agent"],
    rows,
  );
}
