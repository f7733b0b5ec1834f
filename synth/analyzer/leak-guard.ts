import { lastNumber } from "../tasks/numeric-checker.ts";

/**
 * A correction must repair its step, not hand over the answer (§4.1). It leaks if it states the reference answer while
 * nothing visible leads there: the original action does not have it, the log does not, and the correction does not
 * compute it from numbers that stand in the problem or the log.
 *
 * @returns why it leaks, or undefined
 */
export function leakOf(
  correction: string,
  context: { readonly original: string; readonly visible: string; readonly answer: string },
): string | undefined {
  const answer = lastNumber(context.answer);
  if (answer === undefined) return undefined;
  if (!numbersOf(correction).has(answer)) return undefined;
  if (numbersOf(context.original).has(answer) || numbersOf(context.visible).has(answer)) return undefined;
  if (computes(correction, answer, numbersOf(`${context.visible} ${context.original}`))) return undefined;
  return `it states the final answer ${context.answer} before the run has reached it`;
}

function numbersOf(text: string): ReadonlySet<number> {
  return new Set((text.match(/\d[\d,]*(?:\.\d+)?/gu) ?? []).map((number) => Number(number.replace(/,/gu, ""))));
}

/** `A op B = answer`, true, with A and B both known. */
function computes(text: string, answer: number, known: ReadonlySet<number>): boolean {
  for (const [, a, operator, b, c] of text.matchAll(
    /(\d+(?:\.\d+)?) ?([-+*/×÷]) ?(\d+(?:\.\d+)?) ?= ?(\d+(?:\.\d+)?)/gu,
  )) {
    const [left, right, result] = [Number(a), Number(b), Number(c)];
    if (result !== answer || !known.has(left) || !known.has(right)) continue;
    const value =
      { "+": left + right, "-": left - right, "*": left * right, "×": left * right }[operator ?? ""] ?? left / right;
    if (Math.abs(value - answer) <= 1e-6 * Math.max(1, Math.abs(answer))) return true;
  }
  return false;
}
