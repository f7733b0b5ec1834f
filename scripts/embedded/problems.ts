import type { RandomStream } from "../../src/random.ts";
import { apply } from "../../trainer/engines/embedded/chain-arithmetic.ts";
import type { Reference } from "../../trainer/engines/embedded/reference.ts";
import type { Operation, Operator } from "../../trainer/engines/embedded/vocabulary.ts";

/** What a family of problems looks like in numbers. */
interface Family {
  readonly lengths: readonly number[];
  readonly operators: readonly Operator[];
  readonly start: (random: RandomStream) => number;
  readonly term: (random: RandomStream) => number;
  readonly factors: readonly number[];
}

/** Templated chains: two to four calculations, sums and differences twice as often. */
const TEMPLATED: Family = {
  lengths: [2, 3, 4],
  operators: ["+", "+", "-", "-", "*", "/"],
  start: (random) => 2 + random.int(40),
  term: (random) => 1 + random.int(12),
  factors: [2, 3, 4, 5, 6, 7, 8, 9],
};

/**
 * GSM8K problems that fit the vocabulary: of 1,519 solutions 121 are such chains with operands up to 12. Lengths, operators
 * (27% product, 26% sum, 24% difference, 21% quotient) and factors (mostly 2 and 3) follow their counts.
 */
const GSM8K_LIKE: Family = {
  lengths: [1, 2, 2, 2, 2, 3, 3, 3, 4],
  operators: ["+", "-", "*", "/"],
  start: (random) => (random.chance(0.7) ? 1 + random.int(20) : 1 + random.int(59)),
  term: (random) => 1 + random.int(random.chance(0.85) ? 12 : 22),
  factors: [2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 8, 9, 10, 12],
};

/** Share of problems of the templated family. */
const TEMPLATED_SHARE = 0.7;

export function drawProblem(random: RandomStream): Reference {
  for (;;) {
    const problem = attempt(random, random.chance(TEMPLATED_SHARE) ? TEMPLATED : GSM8K_LIKE);
    if (problem !== undefined) return problem;
  }
}

function attempt(random: RandomStream, family: Family): Reference | undefined {
  const start = family.start(random);
  const operations: Operation[] = [];
  let value = start;
  for (let left = random.pick(family.lengths); left > 0; left -= 1) {
    const operator = random.pick(family.operators);
    const operand = operator === "+" || operator === "-" ? family.term(random) : random.pick(family.factors);
    const next = apply(value, { operator, operand });
    if (next === undefined || (next === 0 && operator !== "-")) return undefined;
    operations.push({ operator, operand });
    value = next;
  }
  return { start, operations };
}
