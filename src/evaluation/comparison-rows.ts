import { COMPARED, type ComparedCell, type ComparedId, type ComparedRow, type ComparedRun } from "./comparison.ts";
import type { EvaluationItem } from "./datasets.ts";
import type { Floor, Tolerance } from "./floor.ts";
import { floorsFor } from "./floors.ts";
import { belowFloor, claimOf, HUMAN_AGREEMENT, type Reference } from "./references.ts";
import type { Cell, GroupScores } from "./score.ts";

/** Method, model and setting of each run; its name where another run would be called the same. */
export function runLabels(runs: readonly Pick<ComparedRun, "name" | "method" | "model" | "withReference">[]): string[] {
  const labels = runs.map(({ method, model, withReference }) =>
    [method, model, withReference ? "w/ G" : null].filter((part) => part !== null).join(", "),
  );
  return labels.map((label, position) =>
    labels.filter((other) => other === label).length === 1 ? label : (runs[position]?.name ?? label),
  );
}

/** The row of a run, each cell held against the floors of the run's own logs. */
export function measuredRow(
  run: ComparedRun,
  label: string,
  scores: GroupScores,
  items: readonly EvaluationItem[],
  frontier: boolean,
  paired: ComparedRow["paired"],
): ComparedRow {
  const floors = floorsFor(items, { train: run.train });
  const cells = Object.fromEntries(
    COMPARED.map(({ id, column, tolerance }) => {
      const cell = cellOf(scores, id);
      const below =
        column === null || cell.value === null
          ? undefined
          : belowFloor({ column, tolerance, value: cell.value }, floors);
      return [id, { ...comparedCell(cell), belowFloor: below === undefined ? null : floorName(below) }];
    }),
  );
  return {
    ...NO_RUN,
    kind: "measured",
    name: run.name,
    label,
    method: run.method,
    model: run.model,
    reference: run.withReference ? "with" : "without",
    cells,
    counted: scores.cost.predictions,
    planned: scores.planned,
    cost: scores.cost,
    frontier,
    paired,
    detail: run.marks.join("; "),
  };
}

/** A run's cell for a column. */
export function cellOf(scores: GroupScores, id: ComparedId): Cell {
  const { strict, officialCompat, parseFailures, noStepNamed } = scores;
  switch (id) {
    case "parseFailures":
      return parseFailures;
    case "noStepNamed":
      return noStepNamed;
    case "compatStep":
      return officialCompat.step;
    case "compatAgent":
      return officialCompat.agent;
    case "compatBoth":
      return officialCompat.both;
    default:
      return strict[id];
  }
}

function comparedCell({ value, n, wilson, clustered }: Cell): ComparedCell {
  const interval = wilson ?? clustered;
  return {
    value,
    low: interval?.low ?? null,
    high: interval?.high ?? null,
    interval: wilson !== null ? "wilson" : clustered !== null ? "clustered" : null,
    n,
    belowFloor: null,
  };
}

const NO_RUN = {
  method: null,
  model: null,
  reference: null,
  counted: null,
  planned: null,
  cost: null,
  frontier: null,
  paired: null,
  isBar: null,
  source: null,
  seenInSource: null,
  detail: "",
} as const satisfies Partial<ComparedRow>;

const exact = (value: number, n: number, below: Floor | undefined): ComparedCell => ({
  value,
  low: null,
  high: null,
  interval: null,
  n,
  belowFloor: below === undefined ? null : floorName(below),
});

/** One row a floor; its tolerances side by side. The constant differs between them and is said for each. */
export function floorRows(floors: readonly Floor[]): ComparedRow[] {
  return [...new Set(floors.map((floor) => floor.id))].map((id) => {
    const those = floors.filter((floor) => floor.id === id);
    const details = detailsOf(those);
    const remarks = [those[0]?.oracle === true ? "oracle" : "", those[0]?.ours === true ? "ours, no bar" : ""];
    return {
      ...NO_RUN,
      kind: "floor",
      name: id,
      label: id,
      isBar: those[0]?.oracle !== true && those[0]?.ours !== true,
      cells: Object.fromEntries(
        those.flatMap((floor) => {
          const column = columnOf(floor.column, floor.tolerance);
          return column === undefined ? [] : [[column, exact(floor.value, floor.n, undefined)]];
        }),
      ),
      detail: [...details, ...remarks.filter((remark) => remark !== "")].join("; "),
    };
  });
}

/** What a floor's tolerances do: once where it is the same, else each for itself (`exact: always 1`, `±2: always 2`). */
function detailsOf(floors: readonly Floor[]): string[] {
  const distinct = new Set(floors.map((floor) => floor.detail));
  if (distinct.size <= 1) return [...distinct].filter((detail) => detail !== "");
  return floors.map(({ tolerance, detail }) => `${tolerance === 0 ? "exact" : `±${tolerance}`}: ${detail}`);
}

function columnOf(column: Floor["column"], tolerance: Tolerance): ComparedId | undefined {
  return COMPARED.find((one) => one.column === column && one.tolerance === tolerance)?.id;
}

const SETTINGS = {
  "with-reference": "with",
  "without-reference": "without",
  unstated: "unstated",
} as const satisfies Record<Reference["setting"], ComparedRow["reference"]>;

/** `constant-step (always 1)` */
export function floorName({ id, detail }: Pick<Floor, "id" | "detail">): string {
  return detail === "" ? id : `${id} (${detail})`;
}

/** What people agree on among themselves, for the subset where that is known. No method: it is never left out of a table. */
export function humanRows(subset: string): ComparedRow[] {
  const { n, step, agent, source } = HUMAN_AGREEMENT;
  if (subset !== HUMAN_AGREEMENT.subset) return [];
  return [
    {
      ...NO_RUN,
      kind: "published",
      name: "human agreement",
      label: "human agreement",
      cells: { step: exact(step / n, n, undefined), agent: exact(agent / n, n, undefined) },
      source,
      seenInSource: true,
      detail: "two teams of people, no method",
    },
  ];
}

/** One row a source, method, model and setting; never mixed with measured ones. */
export function publishedRows(references: readonly Reference[], floors: readonly Floor[]): ComparedRow[] {
  const rows = new Map<string, Reference[]>();
  for (const reference of references) {
    const { method, model, setting, source } = reference;
    const key = JSON.stringify([method, model, setting, source]);
    rows.set(key, [...(rows.get(key) ?? []), reference]);
  }
  return [...rows.values()].flatMap((those) => {
    const [first] = those;
    if (first === undefined) return [];
    const name = first.model === null ? first.method : `${first.method}, ${first.model}`;
    return [
      {
        ...NO_RUN,
        kind: "published" as const,
        name,
        label: `${name}, ${first.setting === "unstated" ? "G unstated" : first.setting === "with-reference" ? "w/ G" : "w/o G"}`,
        method: first.method,
        model: first.model,
        reference: SETTINGS[first.setting],
        cells: Object.fromEntries(
          those.flatMap((reference) => {
            const column = columnOf(reference.column, reference.tolerance);
            const claim = claimOf(reference);
            return column === undefined ? [] : [[column, exact(claim.value, reference.n, belowFloor(claim, floors))]];
          }),
        ),
        source: first.source,
        seenInSource: those.every((reference) => reference.seenInSource),
        detail: [...new Set(those.flatMap(({ note }) => note ?? []))].join("; "),
      },
    ];
  });
}
