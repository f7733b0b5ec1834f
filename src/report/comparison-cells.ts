import type { PairedComparison } from "../evaluation/compare.ts";
import type { ComparedCell, ComparedGroup, ComparedRow } from "../evaluation/comparison.ts";
import type { Cost } from "../evaluation/cost.ts";

/** Marks a value that does not reach the floor of its column. */
export const BELOW = "↓";

export const percent = (value: number, digits = 2): string => (100 * value).toFixed(digits);

/** `26.98 ↓ n=126` and `[20.0, 35.3]`: value with n, and its interval where there is one. */
export function cellLines(cell: ComparedCell | undefined): string[] {
  if (cell === undefined) return ["–"];
  if (cell.value === null) return [`– n=${cell.n}`];
  const value = `${percent(cell.value)}${cell.belowFloor === null ? "" : ` ${BELOW}`} n=${cell.n}`;
  return cell.low === null || cell.high === null
    ? [value]
    : [value, `[${percent(cell.low, 1)}, ${percent(cell.high, 1)}]`];
}

/** `+3.97 n=126`, `[-1.6, 9.5]`, `p=.18 (9 to 4)`: the difference to the baseline over the pairs. */
export function pairedLines(paired: PairedComparison): string[] {
  const { difference, pairs, mcNemar } = paired;
  const sign = (value: number, digits: number): string => `${value > 0 ? "+" : ""}${percent(value, digits)}`;
  return [
    `${sign(difference.mean, 2)} n=${pairs}`,
    `[${sign(difference.interval.low, 1)}, ${sign(difference.interval.high, 1)}]`,
    mcNemar === null
      ? "several epochs"
      : `p=${probability(mcNemar.pValue)} (${mcNemar.onlyFirst}:${mcNemar.onlySecond})`,
  ];
}

export function probability(p: number): string {
  return p < 0.001 ? "<.001" : p.toFixed(3).replace(/^0/u, "");
}

/** Money with four significant digits, or why there is none. */
export function moneyText(cost: Cost): string {
  if (cost.money === null) return "no price";
  const amount = cost.money === 0 ? "0" : String(Number(cost.money.toPrecision(4)));
  return cost.withoutUsage > 0 ? `≥ ${amount}` : amount;
}

/** Tokens, marked where some predictions' usage is unknown. */
export function tokensText(tokens: number, cost: Cost): string {
  return `${cost.withoutUsage > 0 ? "≥ " : ""}${tokens}`;
}

/** `w/ G`, `w/o G`, `G unstated`: as the papers write it. */
export function referenceText(row: Pick<ComparedRow, "reference">): string {
  switch (row.reference) {
    case "with":
      return "w/ G";
    case "without":
      return "w/o G";
    case "unstated":
      return "G unstated";
    case null:
      return "";
  }
}

/** What kind of row it is, for a reader: measured rows bear no mark. */
export function kindText(row: Pick<ComparedRow, "kind">): string {
  switch (row.kind) {
    case "measured":
      return "";
    case "floor":
      return "floor";
    case "published":
      return "published";
  }
}

export function rowsOf(group: ComparedGroup, kind: ComparedRow["kind"]): ComparedRow[] {
  return group.rows.filter((row) => row.kind === kind);
}

/** What every form of a comparison says below its tables. */
export function legend(): string[] {
  return [
    "Percent of the predictions counted, strict scorer unless named official-compat (the benchmark's own substring test).",
    "[low, high] is a 95% interval: Wilson's, or a bootstrap clustered by question where a run has several epochs. Late: label at step 5 or later.",
    `${BELOW} lies below the highest floor of its column: a guess that does not read the log does better.`,
    "Δ: difference to the baseline in percentage points over the logs both have; bootstrap clustered by question, exact McNemar test (in brackets: right only here : right only there). p values are not adjusted for the number of runs.",
    "Published rows were not measured here: values and settings as their sources print them, n the size of the set, no interval.",
    "★ on the cost–accuracy frontier: no other run here is as cheap and as accurate (strict step) and better in one of them.",
  ];
}
