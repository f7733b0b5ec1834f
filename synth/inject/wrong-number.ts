import type { RandomStream } from "../../src/random.ts";
import { formatNumber } from "../tasks/calculations.ts";
import { wrongNumber } from "../tasks/wrong-number.ts";
import { type Domain, NO_CONTEXT, type RuleOperator } from "./operator.ts";
import { assertedResults, changed, consistent } from "./text.ts";

// Quantities only: not a list number ("Plan 2:"), a reference ("result 1"), a number of cards, or part of a name.
const QUANTITY = /(?<![\w.]|result )\d+(?:\.\d+)?(?![\d:\w]|\.\d| cards)/gu;
/** No hand in play counts less or more. */
const [LEAST_HAND, MOST_HAND] = [4, 20];

/**
 * Replaces one quantity of an action by another. Where it stands on the left of an equation the result is worked out
 * anew, as somebody who misreads a number would: the line stays consistent in itself.
 */
export const wrongNumberOperator: RuleOperator = {
  id: "wrong-number",
  title: "one quantity replaced by another",
  kind: "rule",
  domains: ["math", "code", "game"],
  perturb(action, random, { domain } = NO_CONTEXT) {
    const results = assertedResults(action);
    // A tester is wrong about what comes out; another input is another test.
    const isAbout = (at: number): boolean =>
      results.length === 0 || results.some((one) => at >= one.at && at < one.end);
    const quantities = [...action.matchAll(QUANTITY)].filter(({ index }) => isAbout(index));
    if (quantities.length === 0) return undefined;
    const { 0: digits, index } = random.pick(quantities);
    const other = otherThan(Number(digits), domain, random);
    const by = formatNumber(other);
    return consistent(action, changed(action, { at: index, end: index + digits.length, by }));
  },
};

function otherThan(value: number, domain: Domain | undefined, random: RandomStream): number {
  if (domain !== "game") return wrongNumber(value, random);
  const near = [-3, -2, -1, 1, 2, 3].map((step) => value + step);
  return random.pick(near.filter((total) => total >= LEAST_HAND && total <= MOST_HAND));
}
