import { apply, formatNumber, type Operator } from "../tasks/calculations.ts";
import { wrongNumber } from "../tasks/wrong-number.ts";
import type { InjectionOperator } from "./operator.ts";

// Quantities only: not a list number ("Plan 2:") and not a reference ("result 1").
const QUANTITY = /(?<![\d.]|result )\d+(?:\.\d+)?(?![\d:]|\.\d)/gu;
const EQUATION = /(\d+(?:\.\d+)?) ([-+*/]) (\d+(?:\.\d+)?) = (\d+(?:\.\d+)?)/u;

/**
 * Replaces one quantity of an action by another. Where it stands on the left of an equation the result is worked out
 * anew, as somebody who misreads a number would: the line stays consistent in itself.
 */
export const wrongNumberOperator: InjectionOperator = {
  id: "wrong-number",
  title: "one quantity replaced by another",
  perturb(action, random) {
    const quantities = [...action.matchAll(QUANTITY)];
    if (quantities.length === 0) return undefined;
    const chosen = random.pick(quantities);
    const changed = `${action.slice(0, chosen.index)}${formatNumber(wrongNumber(Number(chosen[0]), random))}${action.slice(chosen.index + chosen[0].length)}`;
    const before = EQUATION.exec(action);
    const after = EQUATION.exec(changed);
    // Only a change on the left leaves the right side as it was.
    const consistent = before !== null && after !== null && before[4] === after[4] ? workOut(changed, after) : changed;
    return consistent === action ? undefined : consistent;
  },
  rephrase: (action) => (action.endsWith(".") ? action.slice(0, -1) : `${action}.`),
};

function workOut(action: string, [equation, left, operator, right]: RegExpExecArray): string | undefined {
  const value = apply(operator as Operator, Number(left), Number(right));
  return Number.isFinite(value)
    ? action.replace(equation, `${left} ${operator} ${right} = ${formatNumber(value)}`)
    : undefined;
}
