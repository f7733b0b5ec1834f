import { type Calculation, formatCalculation, formatNumber, type Operator } from "../tasks/calculations.ts";
import { type LogLine, type LogState, readLog, work } from "./log-state.ts";

/** What an agent is about to say, before it is written: the place where an error can enter. */
export type Utterance =
  | { readonly kind: "plan"; readonly number: number; readonly calculation: Calculation; readonly last: boolean }
  | {
      readonly kind: "solution";
      readonly left: number;
      readonly operator: Operator;
      readonly right: number;
      readonly value: number;
    }
  | { readonly kind: "check"; readonly final: boolean; readonly value: number };

/** The right next utterance, computed from the log that the agent is shown; undefined where the log gives no ground for one. */
export function rightUtterance(
  agent: string,
  calculations: readonly Calculation[],
  state: LogState,
  final: boolean,
): Utterance | undefined {
  if (agent === "planner") {
    const number = state.plans + 1;
    const calculation = calculations[state.plans] ?? NOTHING_LEFT;
    return { kind: "plan", number, calculation, last: number >= calculations.length };
  }
  if (agent === "solver") {
    const worked = state.lastPlan === undefined ? undefined : work(state.lastPlan, state);
    if (state.lastPlan === undefined || worked === undefined) return undefined;
    return { kind: "solution", operator: state.lastPlan.operator, ...worked };
  }
  return state.latest === undefined ? undefined : { kind: "check", final, value: state.latest };
}

const NOTHING_LEFT: Calculation = { left: { kind: "previous" }, operator: "+", right: { kind: "number", value: 0 } };

export function write(utterance: Utterance): string {
  switch (utterance.kind) {
    case "plan":
      return `Plan ${utterance.number}: ${formatCalculation(utterance.calculation)}${utterance.last ? " (last)" : ""}`;
    case "solution":
      return `${formatNumber(utterance.left)} ${utterance.operator} ${formatNumber(utterance.right)} = ${formatNumber(utterance.value)}`;
    case "check":
      return `Checked: the ${utterance.final ? "final answer" : "current value"} is ${formatNumber(utterance.value)}.`;
  }
}

/** The log of a run without any error, in the layout of planner–solver–verifier. */
export function cleanLog(calculations: readonly Calculation[]): readonly LogLine[] {
  const lines: LogLine[] = [];
  const say = (agent: string, final = false): void => {
    const utterance = rightUtterance(agent, calculations, readLog(lines), final);
    lines.push({ agent, content: utterance === undefined ? "" : write(utterance) });
  };
  calculations.forEach((_, index) => {
    say("planner");
    say("solver");
    if (index % 2 === 1 && index < calculations.length - 1) say("verifier");
  });
  say("verifier", true);
  return lines;
}
