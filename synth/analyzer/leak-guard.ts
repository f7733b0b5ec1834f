import { pythonIn } from "../tasks/code-answer.ts";
import { normalizeAnswer } from "../tasks/hotpotqa/score.ts";
import { lastNumber } from "../tasks/numeric-checker.ts";

export interface LeakContext {
  readonly original: string;
  /** Problem, log, and what the agent was shown besides. */
  readonly visible: string;
  /** The reference answer; empty where the task has none. */
  readonly answer: string;
  /** The reference solution where the answer is a program. */
  readonly program?: string | undefined;
}

/**
 * A correction must repair its step, not hand over the answer (§4.1). It leaks if it states the reference answer while
 * nothing visible leads there: the original action does not have it, the log does not, and the correction does not
 * compute it from numbers that stand in the problem or the log. Numbers are compared by value, words normalised as in
 * HotpotQA's exact match, programs without comments and layout.
 *
 * @returns why it leaks, or undefined
 */
export function leakOf(correction: string, context: LeakContext): string | undefined {
  if (context.program !== undefined) return programLeak(correction, context.original, context.program);
  if (context.answer.trim() === "") return undefined;
  const answer = lastNumber(context.answer);
  const isNumeric = answer !== undefined && NUMBER_WITH_UNIT.test(context.answer.trim());
  const leaks = isNumeric ? numberLeaks(correction, answer, context) : wordsLeak(correction, context);
  return leaks ? `it states the final answer ${context.answer} before the run has reached it` : undefined;
}

/** `18`, `$1,200`, `72 dollars`, `40%`: not `\\frac{1}{2}`, `x = 5`, or a title with a year. */
const NUMBER_WITH_UNIT = /^[^\p{L}\d\\^/]*\d[\d,.]*\s*[\p{L}%]*\.?$/u;

function numberLeaks(correction: string, answer: number, { original, visible }: LeakContext): boolean {
  if (!numbersOf(correction).has(answer)) return false;
  if (numbersOf(original).has(answer) || numbersOf(visible).has(answer)) return false;
  return !computes(correction, answer, numbersOf(`${visible} ${original}`));
}

/** Words that stand anywhere without meaning the answer: these leak where they are stated as one. */
const COMMON = /^(?:yes|no|true|false|[a-z]|hit|stand|double)$/u;

function wordsLeak(correction: string, { original, visible, answer }: LeakContext): boolean {
  const wanted = normalizeAnswer(answer);
  if (wanted === "") return false;
  if (COMMON.test(wanted)) return statedIn(correction) === wanted && statedIn(original) === undefined;
  const holds = (text: string): boolean => ` ${normalizeAnswer(text)} `.includes(` ${wanted} `);
  return holds(correction) && !holds(original) && !holds(visible);
}

/** What a text calls the answer; all of it if it is a single word. */
function statedIn(text: string): string | undefined {
  const stated =
    /\banswer(?: is)?:? +["']?([\p{L}]+)["']?\.?\s*$/iu.exec(text)?.[1] ?? /^\s*(\p{L}+)\.?\s*$/u.exec(text)?.[1];
  return stated === undefined ? undefined : normalizeAnswer(stated);
}

/** The whole reference program, in a step that writes no such program. */
function programLeak(correction: string, original: string, program: string): string | undefined {
  const wanted = essence(program);
  if (wanted === "" || !essence(pythonIn(correction)).includes(wanted)) return undefined;
  const names = [...program.matchAll(/\bdef (\w+)/gu)].map(([, name = ""]) => name);
  if (names.some((name) => new RegExp(`\\bdef ${name}\\b`, "u").test(original))) return undefined;
  return "it states the reference program in a step that writes none";
}

/** Code without comments, blank space and kinds of quotes. */
function essence(code: string): string {
  return code
    .replace(/^\s*#.*$/gmu, "")
    .replace(/\s#[^"'\n]*$/gmu, "")
    .replace(/\s+/gu, "")
    .replace(/"/gu, "'");
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
