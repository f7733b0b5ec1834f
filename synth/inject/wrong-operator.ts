import { wrongOperator } from "../simulator/mistakes.ts";
import { NO_CONTEXT, type RuleOperator } from "./operator.ts";
import { type Change, changed, changesAt, consistent, hasCode, oneOf } from "./text.ts";

/** Between two operands: not a sign, not a hyphen. */
const ARITHMETIC = /(?<=[\w)\]] )[-+*/](?= [\w([])/gu;

/** Comparisons and connectives that are mixed up, both ways. */
const SWAPS: readonly (readonly [string, string])[] = [
  ["<", "<="],
  [">", ">="],
  ["==", "!="],
  ["and", "or"],
  ["//", "/"],
];

/** Lines in which another operator makes a loop endless, a signature wrong, or no test of an assertion. */
const UNTOUCHED = /^\s*(?:while |def |import |from |assert |#)/u;

/** Replaces one operator: of a calculation, with its result worked out anew, or of a line of code. */
export const wrongOperatorOperator: RuleOperator = {
  id: "wrong-operator",
  title: "one operator replaced by another",
  kind: "rule",
  domains: ["math", "code"],
  perturb(action, random, { domain, shown } = NO_CONTEXT) {
    if (domain === "code" || (domain === undefined && hasCode(action))) {
      return oneOf(action, codeChanges(action), random);
    }
    if (domain !== undefined && domain !== "math") return undefined;
    const changes = isPlanned(action, shown) ? [] : arithmeticChanges(action);
    return changes.length === 0 ? undefined : consistent(action, changed(action, random.pick(changes)));
  },
};

/** An equation that carries out a plan has its operator from there: another one would stand out, and nobody slips like that. */
function isPlanned(action: string, shown: string): boolean {
  const operator = /^-?[\d.]+ ([-+*/]) -?[\d.]+ = -?[\d.]+$/u.exec(action)?.[1];
  const plan = [...shown.matchAll(/\bPlan \d+: (.*)$/gmu)].at(-1)?.[1];
  return operator !== undefined && plan?.includes(` ${operator} `) === true;
}

function arithmeticChanges(text: string): Change[] {
  return changesAt(text, ARITHMETIC, ([sign]) =>
    sign === "+" || sign === "-" || sign === "*" || sign === "/" ? [wrongOperator(sign)] : [],
  );
}

function codeChanges(code: string): Change[] {
  let start = 0;
  return code.split("\n").flatMap((line) => {
    const at = start;
    start += line.length + 1;
    if (UNTOUCHED.test(line)) return [];
    const swaps = SWAPS.flatMap(([a, b]) => [
      ...changesAt(line, new RegExp(`(?<= )${escaped(a)}(?= )`, "gu"), () => [b]),
      ...changesAt(line, new RegExp(`(?<= )${escaped(b)}(?= )`, "gu"), () => [a]),
    ]);
    return [...arithmeticChanges(line), ...swaps].map((change) => ({
      ...change,
      at: change.at + at,
      end: change.end + at,
    }));
  });
}

const escaped = (text: string): string => text.replace(/[/*+]/gu, "\\$&");
