import { apply, type Calculation, type Operand, parseCalculation } from "../tasks/calculations.ts";
import { lastNumber } from "../tasks/numeric-checker.ts";

/** One line of the log a prompt shows. */
export interface LogLine {
  readonly agent: string;
  readonly content: string;
}

/** What the log says so far; wrong lines count like right ones, so a wrong value carries on. */
export interface LogState {
  readonly lines: readonly LogLine[];
  /** Plans named so far. */
  readonly plans: number;
  readonly lastPlan: Calculation | undefined;
  /** Results as the solver stated them, in order. */
  readonly results: readonly number[];
  /** The value stated last, by solver or verifier. */
  readonly latest: number | undefined;
}

export function readLog(lines: readonly LogLine[]): LogState {
  let plans = 0;
  let lastPlan: Calculation | undefined;
  let latest: number | undefined;
  const results: number[] = [];
  for (const { agent, content } of lines) {
    if (agent === "planner") {
      plans++;
      lastPlan = parseCalculation(content.replace(/^.*?Plan \d+:\s*/u, "").replace(/\s*\(last\)|\.\s*$/gu, ""));
      continue;
    }
    const value = lastNumber(content);
    if (value === undefined) continue;
    latest = value;
    if (agent === "solver") results.push(value);
  }
  return { lines, plans, lastPlan, results, latest };
}

/** The value an operand has in this log; undefined where the log does not say. */
export function resolve(operand: Operand, state: LogState): number | undefined {
  switch (operand.kind) {
    case "number":
      return operand.value;
    case "previous":
      return state.latest;
    case "result":
      return state.results[operand.index - 1];
  }
}

export interface Worked {
  readonly left: number;
  readonly right: number;
  readonly value: number;
}

/** Carries out a calculation with the values of the log. */
export function work(calculation: Calculation, state: LogState): Worked | undefined {
  const left = resolve(calculation.left, state);
  const right = resolve(calculation.right, state);
  if (left === undefined || right === undefined) return undefined;
  const value = apply(calculation.operator, left, right);
  return Number.isFinite(value) ? { left, right, value } : undefined;
}
