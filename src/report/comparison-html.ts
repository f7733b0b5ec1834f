import {
  AXIS_TITLES,
  COMPARED,
  type ComparedGroup,
  type ComparedRow,
  type Comparison,
} from "../evaluation/comparison.ts";
import { costPerPrediction } from "../evaluation/cost.ts";
import {
  cellLines,
  kindText,
  legend,
  moneyText,
  pairedLines,
  percent,
  referenceText,
  rowsOf,
  tokensText,
} from "./comparison-cells.ts";
import { remarks } from "./comparison-files.ts";
import { type DotRow, dotPlot, escapeHtml, type ScatterPoint, scatterPlot } from "./plots.ts";

/** How many published results a plot shows; the table has all. */
const PLOTTED = 8;

/** The comparison as one HTML file: plots as inline SVG, tables, no script, nothing loaded from anywhere. */
export function comparisonHtml(comparison: Comparison, title: string): string {
  const notes = comparison.notes.map((note) => `<li class="note">${escapeHtml(note)}</li>`);
  const sections = comparison.groups.map((group) => section(group));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escapeHtml(title)}</h1>
${notes.length === 0 ? "" : `<ul>${notes.join("")}</ul>`}
${sections.join("\n")}
<footer><ul>${legend()
    .map((line) => `<li>${escapeHtml(line)}</li>`)
    .join("")}</ul></footer>
</body>
</html>
`;
}

function section(group: ComparedGroup): string {
  const { baseline } = group;
  const published = rowsOf(group, "published");
  return `<section>
<h2>${escapeHtml(group.name)}</h2>
<div class="plots">${sharePlot(group, "step")}${sharePlot(group, "agent")}${costPlot(group)}</div>
<div class="scroll">${table([...rowsOf(group, "measured"), ...rowsOf(group, "floor")], baseline)}</div>
${published.length === 0 ? "" : `<details><summary>Published results: ${published.length} rows, not measured here</summary><div class="scroll">${table(published, baseline)}</div></details>`}
</section>`;
}

function sharePlot(group: ComparedGroup, id: "step" | "agent"): string {
  const measured = rowsOf(group, "measured").flatMap((row) => dotRow(row, id));
  const published = rowsOf(group, "published")
    .flatMap((row) => dotRow(row, id))
    .sort((a, b) => b.value - a.value);
  const floors = rowsOf(group, "floor").flatMap((row) => {
    const value = row.cells[id]?.value ?? null;
    return value === null || row.isBar !== true ? [] : [{ value, name: row.name }];
  });
  const floor = floors.reduce<(typeof floors)[number] | null>(
    (a, b) => (a === null || b.value > a.value ? b : a),
    null,
  );
  if (measured.length === 0) return "";
  const more =
    published.length > PLOTTED ? ` and the ${PLOTTED} highest published` : published.length > 0 ? " and published" : "";
  const title = `${id === "step" ? "Step" : "Agent"} accuracy, strict: measured (●, 95%)${more}${more === "" ? "" : " (◇)"}`;
  return dotPlot(title, [...measured, ...published.slice(0, PLOTTED)], floor);
}

function dotRow(row: ComparedRow, id: "step" | "agent"): DotRow[] {
  const cell = row.cells[id];
  if (cell === undefined || cell.value === null || row.kind === "floor") return [];
  const { value, low, high, n } = cell;
  return [{ label: row.label, kind: row.kind, value, low, high, text: `${percent(value)}  n=${n}` }];
}

function costPlot(group: ComparedGroup): string {
  const points = rowsOf(group, "measured").flatMap((row): ScatterPoint[] => {
    const cost = row.cost === null ? null : costPerPrediction(row.cost, group.costAxis);
    const accuracy = row.cells.step?.value ?? null;
    return cost === null || accuracy === null
      ? []
      : [{ label: row.label, cost, accuracy, frontier: row.frontier === true }];
  });
  // One point is no comparison.
  return points.length < 2
    ? ""
    : scatterPlot("Step accuracy over cost, and the frontier", AXIS_TITLES[group.costAxis], points);
}

function table(rows: readonly ComparedRow[], baseline: string): string {
  const columns = COMPARED.filter(({ id }) => rows.some((row) => row.cells[id] !== undefined));
  const header = ["", "model", "G", ...columns.map(({ title }) => title)];
  const costs = ["calls", "prompt tokens", "completion tokens", "money", "seconds", "Δ step", "Δ agent"];
  const measured = rows.some((row) => row.kind === "measured");
  const titles = [...header, ...(measured ? costs : []), "source, remarks"];
  const body = rows.map((row) => {
    const cells = [
      ...[row.model ?? "", referenceText(row)].map((text) => `<td>${escapeHtml(text)}</td>`),
      ...columns.map(({ id }) =>
        shareCell(row.cells[id] === undefined ? [] : cellLines(row.cells[id]), row.cells[id]?.belowFloor ?? null),
      ),
      ...(measured ? costCells(row, baseline).map((lines) => shareCell(lines, null)) : []),
      `<td class="remark">${escapeHtml(remarks(row))}</td>`,
    ];
    const kind = kindText(row);
    return `<tr class="${row.kind}"><th>${kind === "" ? "" : `<span class="kind">${kind}</span> `}${escapeHtml(row.name)}${row.frontier === true ? ' <span title="on the cost–accuracy frontier">★</span>' : ""}</th>${cells.join("")}</tr>`;
  });
  return `<table><thead><tr>${titles.map((text) => `<th>${escapeHtml(text)}</th>`).join("")}</tr></thead><tbody>${body.join("")}</tbody></table>`;
}

function shareCell(lines: readonly string[], below: string | null): string {
  const [first = "", ...rest] = lines;
  const title = below === null ? "" : ` class="below" title="${escapeHtml(`below the floor ${below}`)}"`;
  return `<td${title}>${escapeHtml(first)}${rest.map((line) => `<br><small>${escapeHtml(line)}</small>`).join("")}</td>`;
}

function costCells({ cost, paired, name, kind }: ComparedRow, baseline: string): string[][] {
  if (cost === null) return Array.from({ length: 7 }, () => []);
  return [
    [String(cost.calls)],
    [tokensText(cost.promptTokens, cost)],
    [tokensText(cost.completionTokens, cost)],
    [moneyText(cost)],
    [cost.seconds.toFixed(1)],
    paired === null ? [kind === "measured" && name === baseline ? "baseline" : ""] : pairedLines(paired.step),
    paired === null ? [] : pairedLines(paired.agent),
  ];
}

const STYLE = `
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--line:#d9dee6;--paper:#fff;--band:#f5f7fa;--blue:#1d5fd1;--amber:#a35200;--grey:#6b7280}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ee;--soft:#a2adbb;--line:#36404d;--paper:#14181e;--band:#1c222a;--blue:#7aa7ff;--amber:#f0a65a;--grey:#9aa3af}}
*{box-sizing:border-box}
body{margin:0 auto;padding:24px;max-width:1500px;background:var(--paper);color:var(--ink);font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:24px;margin:0 0 12px}h2{font-size:19px;margin:34px 0 10px;border-bottom:1px solid var(--line);padding-bottom:4px}
.note{color:var(--amber)}
.plots{display:flex;flex-wrap:wrap;gap:24px;align-items:flex-start;margin:12px 0}
svg{max-width:100%;height:auto;font-size:12px;font-family:inherit}
svg text{fill:var(--ink)}svg .title{font-size:14px;font-weight:600}svg .tick{fill:var(--soft);font-size:11px}
svg .grid{stroke:var(--line)}svg .interval{stroke:var(--blue);stroke-width:3;stroke-opacity:.45}
svg .measured .mark{fill:var(--blue)}svg .published .mark{fill:none;stroke:var(--grey);stroke-width:1.5}
svg .published .label,svg .published .value{fill:var(--soft)}
svg .floor{stroke:var(--amber);stroke-width:1.5;stroke-dasharray:5 4}svg .floor-name{fill:var(--amber);font-size:11px}
svg .frontier{fill:none;stroke:var(--blue);stroke-width:1.5;stroke-opacity:.6}svg .best .label{font-weight:600}
.scroll{overflow-x:auto;margin:10px 0}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:5px 9px;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;white-space:nowrap}
thead th{background:var(--band);font-weight:600}
tbody th{position:sticky;left:0;background:var(--paper);font-weight:500}thead th:first-child{position:sticky;left:0}
td small{color:var(--soft)}td.below{color:var(--amber)}td.remark{white-space:normal;min-width:340px;color:var(--soft)}
.kind{font-size:11px;color:var(--soft);border:1px solid var(--line);border-radius:3px;padding:0 4px}
tr.floor th,tr.floor td,tr.published th,tr.published td{color:var(--soft)}
tr.published td.below{color:var(--amber)}
details{margin:12px 0}summary{cursor:pointer;color:var(--blue)}
footer{margin-top:36px;color:var(--soft);font-size:13px}
`;
