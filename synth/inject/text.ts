import type { RandomStream } from "../../src/random.ts";
import { apply, formatNumber } from "../tasks/calculations.ts";

/** One way to change a text: the characters from `at` to `end` become `by`. */
export interface Change {
  readonly at: number;
  readonly end: number;
  readonly by: string;
}

export function changed(text: string, { at, end, by }: Change): string {
  return text.slice(0, at) + by + text.slice(end);
}

/** A change for every place where the pattern matches; `by` gives the replacements of one match, the same text is none. */
export function changesAt(text: string, pattern: RegExp, by: (match: RegExpExecArray) => readonly string[]): Change[] {
  return [...text.matchAll(pattern)].flatMap((match) =>
    by(match)
      .filter((other) => other !== match[0])
      .map((other) => ({ at: match.index, end: match.index + match[0].length, by: other })),
  );
}

/** One of the changes, applied; undefined where there is none. */
export function oneOf(text: string, changes: readonly Change[], random: RandomStream): string | undefined {
  return changes.length === 0 ? undefined : changed(text, random.pick(changes));
}

const EQUATION = /(-?\d+(?:\.\d+)?) ([-+*/]) (-?\d+(?:\.\d+)?) = (-?\d+(?:\.\d+)?)/u;

/**
 * The changed action with its equation worked out anew where only the left side was touched, as somebody who misread it
 * would write it. Undefined where it does not come out, or comes out as it was.
 */
export function consistent(before: string, after: string): string | undefined {
  const [was, is] = [EQUATION.exec(before), EQUATION.exec(after)];
  if (was === null || is === null || was[4] !== is[4]) return after === before ? undefined : after;
  const [equation, left = "", operator = "", right = ""] = is;
  const value = isOperator(operator) ? apply(operator, Number(left), Number(right)) : Number.NaN;
  if (!Number.isFinite(value)) return undefined;
  const redone = after.replace(equation, () => `${left} ${operator} ${right} = ${formatNumber(value)}`);
  return redone === before ? undefined : redone;
}

function isOperator(text: string): text is "+" | "-" | "*" | "/" {
  return text === "+" || text === "-" || text === "*" || text === "/";
}

/** True for text with Python in it. */
export function hasCode(text: string): boolean {
  return /```|^\s*(?:def|return|import|from|for|if|while|assert) ?/mu.test(text);
}

/** The lines `assert CALL == RESULT` of a test, and where in the text their results stand. */
export function assertedResults(code: string): { readonly at: number; readonly end: number }[] {
  return [...code.matchAll(/(?<=^ *assert .* == )\S[^\n]*$/gmu)].map(({ index, 0: result }) => ({
    at: index,
    end: index + result.length,
  }));
}

/** A word that begins large; a full stop belongs to it only inside it or after an initial. */
const LARGE_WORD = /\p{Lu}(?:[\p{L}\p{N}'’-]|\.(?=[\p{L}\p{N}])|(?<=\b\p{Lu})\.(?= \p{Lu}))*/u.source;
/** Such words, joined. */
const NAME = new RegExp(`${LARGE_WORD}(?: (?:of |the |de |von )?${LARGE_WORD})*`, "gu");
/** Words that begin lines and labels of the shipped systems, and sentences of anybody. */
const NOT_NAMES = new Set(
  "A After An And Answer April Are As At August Before But By Checked December February For From Given He Her His Hop How However I If In It Its January July June Log Lookup March May Note November October On Plan Problem Search September She So That The Their Then There They This Those To Turn Was We Were What When Where Which Who Why With You".split(
    " ",
  ),
);

/** The proper names in a text, each once. */
export function namesIn(text: string): readonly string[] {
  return [...new Set([...text.matchAll(NAME)].map(([name]) => trimmed(name)))].filter(
    (name) => name.length > 2 && !NOT_NAMES.has(name),
  );
}

/** A title as a sentence names it: without what tells it from others of the same name. */
export const inProse = (title: string): string => title.replace(/ \([^)]*\)$/u, "");

/** What stands in a team's prompt besides the demand of the turn: its words name nothing. */
export function withoutDemand(shown: string): string {
  return shown.replace(/\n\nTurn: \w+\. [^\n]*$/u, "");
}

/** Without a full stop or a possessive at its end, and without a first word that only begins the sentence. */
function trimmed(name: string): string {
  const [first = "", ...rest] = name.replace(/(?:['’]s|[.'’-]+)$/u, "").split(" ");
  return rest.length > 0 && NOT_NAMES.has(first) ? rest.join(" ") : [first, ...rest].join(" ");
}

/** What tools and the world answered last, as a team's log shows it: the last lines that begin with `> `. */
export function lastObservation(shown: string): string | undefined {
  return [...shown.matchAll(/^> \w+: (.*)$/gmu)].at(-1)?.[1];
}

export function sentencesIn(text: string): readonly string[] {
  return text
    .replace(/^\[[^\]]*\] /u, "")
    .split(/(?<=[.!?]) +(?=\p{Lu})/u)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== "");
}
