import { NO_CONTEXT, type RuleOperator } from "./operator.ts";
import { changesAt, hasCode, oneOf } from "./text.ts";

/** The last statement of a function, after a deeper block. */
const RETURN_AFTER_BLOCK = /(?<=\n)( +)\S[^\n]*\n( +)return\b[^\n]*(?=\n```|\n*$)/u;

/** Ends too early: a plan called the last, a stand in place of a card, a function that returns in its first round. */
export const prematureStop: RuleOperator = {
  id: "premature-stop",
  title: "the work ended too early",
  kind: "rule",
  domains: ["math", "code", "search", "game"],
  perturb(action, random, { domain } = NO_CONTEXT) {
    if (domain === "code" || (domain === undefined && hasCode(action))) return returningEarly(action);
    if (domain === "game") {
      return oneOf(
        action,
        changesAt(action, /\b(?:hit|double)\b/gu, () => ["stand"]),
        random,
      );
    }
    return /^(?:Plan|Hop) \d+: .*[^)]$/u.test(action) ? `${action} (last)` : undefined;
  },
};

function returningEarly(code: string): string | undefined {
  const found = RETURN_AFTER_BLOCK.exec(code);
  const [block, deeper = "", own = ""] = found ?? [];
  if (found === null || block === undefined || deeper.length <= own.length) return undefined;
  const early = block.replace(`\n${own}return`, `\n${deeper}return`);
  return code.slice(0, found.index) + early + code.slice(found.index + block.length);
}
