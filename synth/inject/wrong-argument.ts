import { NO_CONTEXT, type RuleOperator } from "./operator.ts";
import { assertedResults, type Change, changesAt, hasCode, namesIn, oneOf, withoutDemand } from "./text.ts";

/** Order matters to them not. */
const SYMMETRIC = new Set(["max", "min", "gcd", "lcm", "print", "set", "dict", "isclose"]);
const CALL = /(?<!def )\b([A-Za-z_]\w*)\(([^\s(),=]+), ([^\s(),=]+)\)/gu;
/** Operands of a plan; those of an equation would have to be carried into its result. */
const ORDERED = /(previous|result \d+|\d+(?:\.\d+)?) ([-/]) (previous|result \d+|\d+(?:\.\d+)?)(?! =|[\d.])/gu;
const TOOL_ARGUMENT = /(?<=\b(?:Search|Lookup)\[)[^\]\n]*(?=\])|(?<=look up ).*?(?= \(last\)|$)/gmu;
const CARD = /(?<=against )(?:\d+|A)$/gmu;
const MOVE = /(?<=^(?:Advice|Action): )\w+$/gmu;
const CARDS = ["2", "3", "4", "5", "6", "7", "8", "9", "10", "A"];

/** Calls the right thing with the wrong argument: swapped, another result, another query, another card or move. */
export const wrongArgument: RuleOperator = {
  id: "wrong-argument",
  title: "a tool, function or operation given the wrong argument",
  kind: "rule",
  domains: ["math", "code", "search", "game"],
  perturb(action, random, { domain, shown, titles } = NO_CONTEXT) {
    if (domain === "code" || (domain === undefined && hasCode(action))) return oneOf(action, inCalls(action), random);
    if (domain === "game") {
      const changes = [...inPlace(action, CARD, CARDS), ...inPlace(action, MOVE, allowedMoves(shown))];
      return oneOf(action, changes, random);
    }
    if (domain === "search") {
      return oneOf(action, inPlace(action, TOOL_ARGUMENT, titles ?? namesIn(withoutDemand(shown))), random);
    }
    return oneOf(action, inCalculations(action, shown), random);
  },
};

/** What the table said last that one may do. */
function allowedMoves(shown: string): readonly string[] {
  return [...shown.matchAll(/you may ([\w, ]+)/gu)].at(-1)?.[1]?.split(", ") ?? [];
}

const inPlace = (action: string, pattern: RegExp, others: readonly string[]): Change[] =>
  changesAt(action, pattern, ([argument]) => others.filter((other) => !argument.includes(other)));

/** An assertion with other arguments is another test, and a right one as likely as not. */
const inCalls = (code: string): Change[] =>
  assertedResults(code).length > 0
    ? []
    : changesAt(code, CALL, ([, name = "", a = "", b = ""]) => (SYMMETRIC.has(name) ? [] : [`${name}(${b}, ${a})`]));

function inCalculations(action: string, shown: string): Change[] {
  const results = shown.match(/^\d+ solver: /gmu)?.length ?? 0;
  const swapped = changesAt(action, ORDERED, ([, left = "", sign = "", right = ""]) => [`${right} ${sign} ${left}`]);
  const others = Array.from({ length: results }, (_, before) => `result ${before + 1}`);
  // The last result is what `previous` stands for.
  return [...swapped, ...changesAt(action, /\bprevious\b|\bresult \d+\b/gu, () => others.slice(0, -1))];
}
