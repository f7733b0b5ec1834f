import type { Cost } from "../evaluation/cost.ts";
import type { Floor } from "../evaluation/floor.ts";
import { highestFloor } from "../evaluation/floors.ts";
import { belowFloor } from "../evaluation/references.ts";
import type { Cell, GroupScores, Scores } from "../evaluation/score.ts";
import { moneyText, tokensText } from "./comparison-cells.ts";
import { textTable } from "./table.ts";

/** Floors of each column of a table. */
export type FloorsByGroup = Readonly<Record<string, readonly Floor[]>>;

const percent = (value: number): string => (100 * value).toFixed(2);

/** `26.98 [20.0, 35.3] n=126`; the interval is Wilson's, or clustered by question with several epochs. */
export function cellText(cell: Cell): string {
  if (cell.value === null) return `– n=${cell.n}`;
  const interval = cell.wilson ?? cell.clustered;
  const range = interval === null ? "" : ` [${(100 * interval.low).toFixed(1)}, ${(100 * interval.high).toFixed(1)}]`;
  return `${percent(cell.value)}${range} n=${cell.n}`;
}

/** Both scorers' figures per subset, with the floor of each column and a mark where the result lies below it. */
export function evaluationTable(
  title: string,
  scores: Scores,
  floors: FloorsByGroup,
  marks: readonly string[] = [],
): string {
  const groups = Object.entries(scores.byGroup);
  const row = (
    name: string,
    cellOf: (group: GroupScores) => Cell,
    column?: Floor["column"],
    tolerance: 0 | 1 | 2 | 3 = 0,
  ) => [
    name,
    ...groups.map(
      ([group, one]) => `${cellText(cellOf(one))}${floorMark(cellOf(one), floors[group] ?? [], column, tolerance)}`,
    ),
  ];
  const rows = [
    row("strict: step", ({ strict }) => strict.step, "step"),
    row("strict: agent", ({ strict }) => strict.agent, "agent"),
    row("strict: both", ({ strict }) => strict.both),
    row("strict: step ±1", ({ strict }) => strict.within1, "step", 1),
    row("strict: step ±2", ({ strict }) => strict.within2, "step", 2),
    row("strict: step ±3", ({ strict }) => strict.within3, "step", 3),
    row("strict: step, label ≥ 5", ({ strict }) => strict.lateStep),
    row("official-compat: step", ({ officialCompat }) => officialCompat.step),
    row("official-compat: agent", ({ officialCompat }) => officialCompat.agent),
    row("parse failures", ({ parseFailures }) => parseFailures),
    row("no step named", ({ noStepNamed }) => noStepNamed),
  ];
  const costs = [...groups, ...(groups.length > 1 ? [["in all", scores] as const] : [])].map(([group, one]) =>
    costRow(group, one),
  );
  const counted = scores.planned - scores.missing;
  const remarks = [
    `${counted} of ${scores.planned} predictions${scores.missing > 0 ? `: unfinished, ${scores.missing} are missing and not counted` : ""}`,
    ...(scores.unknown.count > 0
      ? [
          `${scores.unknown.count} predictions are for ids or epochs that the run does not have (${scores.unknown.ids.join(", ")}): not counted`,
        ]
      : []),
    ...(scores.superseded > 0 ? [`${scores.superseded} lines replaced by later ones for the same log and epoch`] : []),
    costLine(scores.cost),
    ...Object.entries(scores.errors).map(
      ([code, count]) => `${count} calls failed with ${code}: counted as wrong, asked again on resume`,
    ),
    ...(scores.cut > 0 ? [`${scores.cut} logs were cut to fit the prompt`] : []),
    ...marks.map((mark) => `MARKED: ${mark}`),
  ];
  return `${textTable(title, ["percent [95%]", ...groups.map(([group]) => group)], rows)}\n${costTable(costs)}\n${remarks.join("\n")}`;
}

const costTable = (rows: readonly (readonly string[])[]): string =>
  textTable("cost", ["", "predictions", "calls", "prompt tokens", "completion tokens", "money", "seconds"], rows);

function costRow(group: string, { cost, planned }: GroupScores): string[] {
  return [
    group,
    `${cost.predictions} of ${planned}`,
    String(cost.calls),
    tokensText(cost.promptTokens, cost),
    tokensText(cost.completionTokens, cost),
    moneyText(cost),
    cost.seconds.toFixed(1),
  ];
}

function costLine(cost: Cost): string {
  const unmetered = cost.withoutUsage > 0 ? ` (${cost.withoutUsage} predictions without reported usage)` : "";
  return `cost: ${cost.calls} calls, ${cost.promptTokens} prompt and ${cost.completionTokens} completion tokens${unmetered}, ${cost.seconds.toFixed(1)} s`;
}

function floorMark(
  cell: Cell,
  floors: readonly Floor[],
  column: Floor["column"] | undefined,
  tolerance: 0 | 1 | 2 | 3,
): string {
  if (column === undefined || cell.value === null) return "";
  const highest = highestFloor(floors, column, tolerance);
  if (highest === undefined) return "";
  const below = belowFloor({ column, tolerance, value: cell.value }, floors) !== undefined;
  return `\n${below ? "below the floor" : "floor"} ${percent(highest.value)} (${highest.id})`;
}

/** The floors of a set as a table: one row a floor, one column a subset. */
export function floorsTable(title: string, floors: FloorsByGroup): string {
  const groups = Object.keys(floors);
  const rows = new Map<string, Map<string, string>>();
  for (const [group, list] of Object.entries(floors)) {
    for (const floor of list) {
      const name = `${floor.column}: ${floor.id}${floor.tolerance === 0 ? "" : ` ±${floor.tolerance}`}`;
      const cells = rows.get(name) ?? new Map<string, string>();
      cells.set(group, `${percent(floor.value)}${floor.detail === "" ? "" : ` (${floor.detail})`}`);
      rows.set(name, cells);
    }
  }
  return textTable(
    title,
    ["floor, percent", ...groups.map((group) => `${group} (n=${floors[group]?.[0]?.n ?? 0})`)],
    [...rows].map(([name, cells]) => [name, ...groups.map((group) => cells.get(group) ?? "")]),
  );
}
