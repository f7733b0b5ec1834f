import type { ParsePath } from "../method.ts";
import { REASON_KEYS } from "./answer-candidates.ts";
import { answerText, isRefusal, lastAnswerTag } from "./answer-text.ts";
import { readFields } from "./read-fields.ts";

/** One of a few alternatives, read from a model's free answer. */
export interface ParsedChoice<Choice extends string> {
  /** null where the answer names none of them, or several. */
  readonly choice: Choice | null;
  readonly parsePath: ParsePath;
  readonly parseFailure?: string;
  /** How many different choices the labelled answers named; the last one counts. */
  readonly answers?: number;
  readonly reason?: string;
}

/** How an alternative is written. */
interface Alternative {
  /** What an answer, a line or a field begins with. */
  readonly words: readonly string[];
  /** What names it wherever it stands in a sentence. */
  readonly phrases?: readonly string[];
}
type Alternatives<Choice extends string> = Readonly<Record<Choice, Alternative>>;

const YES_NO: Alternatives<"yes" | "no"> = { yes: { words: ["yes", "true"] }, no: { words: ["no", "false"] } };
const HALVES: Alternatives<"earlier" | "later"> = {
  earlier: {
    words: ["earlier", "upper", "first", "former"],
    phrases: ["earlier half", "upper half", "first half", "earlier part"],
  },
  later: {
    words: ["later", "lower", "second", "latter"],
    phrases: ["later half", "lower half", "second half", "latter half", "later part"],
  },
};

/** Reads a yes or no. `keys` are the labels it may stand under, in the form of `keyName`. */
export function parseYesNo(output: string, keys: readonly string[]): ParsedChoice<"yes" | "no"> {
  return parseChoice(output, ["verdict", "answer", ...keys], YES_NO);
}

/** Reads which half of a log is meant: earlier (upper, first) or later (lower, second). */
export function parseHalf(output: string): ParsedChoice<"earlier" | "later"> {
  return parseChoice(output, ["half", "verdict", "answer", "part"], HALVES);
}

function parseChoice<Choice extends string>(
  output: string,
  keys: readonly string[],
  alternatives: Alternatives<Choice>,
): ParsedChoice<Choice> {
  const answer = answerText(output);
  if ("failure" in answer) return unread(answer.failure);
  const { text } = answer;
  const tag = lastAnswerTag(text);
  const tagged = tag === undefined ? [] : leading(tag, alternatives);
  if (tagged.length === 1 && tagged[0] !== undefined) return { choice: tagged[0], parsePath: "answer-tag" };

  const fields = readFields(text, { choice: keys, reason: [...REASON_KEYS] });
  const reason = fields?.last.reason;
  const withReason = reason !== undefined && reason !== "" ? { reason } : {};
  if (fields?.last.choice !== undefined) {
    const named = (fields.every.get("choice") ?? []).map((value) => only(alternativesIn(value, alternatives)));
    const choice = named.at(-1) ?? null;
    if (choice === null) return { ...unread(`the answer is not one of: ${names(alternatives)}`), ...withReason };
    const answers = new Set(named).size;
    return { choice, parsePath: fields.path, ...(answers > 1 && { answers }), ...withReason };
  }
  return { ...fromProse(text, alternatives), ...withReason };
}

const unread = (parseFailure: string) => ({ choice: null, parsePath: "none" as const, parseFailure });
const names = (alternatives: object): string => Object.keys(alternatives).join(", ");
const only = <T>(items: readonly T[]): T | null => (items.length === 1 ? (items[0] ?? null) : null);

function choicesOf<Choice extends string>(
  alternatives: Alternatives<Choice>,
  holds: (alternative: Alternative) => boolean,
): Choice[] {
  const found: Choice[] = [];
  for (const choice in alternatives) if (holds(alternatives[choice])) found.push(choice);
  return found;
}

const MARKUP = /^[\s*`"'“”_#>([-]*(?:[0-9]{1,3}[.)]\s*)?[\s*`"'“”_#>([-]*(?:the\s+)?/iu;

/** `yes or no`, copied from the question, begins with no choice. */
const GOES_ON = /^\s*(?:or|and|\/|\|)/iu;
/** What may follow a word that is the whole answer, unlike "the first error is …". */
const ENDS = /^(?:\s+(?:half|part))?[\s*`"'”_)]*(?:[.,:;!–—-]|$)/iu;

/** The choices whose word the text begins with: one, or none. `whole` asks that the word be an answer of its own. */
function leading<Choice extends string>(text: string, alternatives: Alternatives<Choice>, whole = false): Choice[] {
  const start = text.replace(MARKUP, "").slice(0, 40).toLowerCase();
  const begins = (word: string): boolean => {
    const rest = start.slice(word.length);
    if (!start.startsWith(word) || /^[\p{L}\p{N}_-]/u.test(rest) || GOES_ON.test(rest)) return false;
    return !whole || ENDS.test(rest);
  };
  return choicesOf(alternatives, ({ words }) => words.some(begins));
}

/** The choices a field names: the one it begins with, else those whose words its first line holds. */
function alternativesIn<Choice extends string>(value: string, alternatives: Alternatives<Choice>): Choice[] {
  const first = leading(value, alternatives);
  if (first.length > 0) return first;
  const [line = ""] = value.toLowerCase().split("\n", 1);
  const parts = new Set(line.split(/[^\p{L}\p{N}_-]+/u));
  return choicesOf(alternatives, ({ words }) => words.some((word) => parts.has(word)));
}

/** An answer without a label: what the first line begins with, or all that the last line says, or the one half named. */
function fromProse<Choice extends string>(text: string, alternatives: Alternatives<Choice>): ParsedChoice<Choice> {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  // "No error was made" is a no, but "the first error" is no half.
  const whole = choicesOf(alternatives, ({ phrases }) => phrases !== undefined).length > 0;
  const first = leading(lines[0] ?? "", alternatives, whole);
  const lastLine = lines.at(-1) ?? "";
  const closing = lastLine.trim().split(/\s+/u).length <= 2 ? leading(lastLine, alternatives) : [];
  const said = [...new Set([...first, ...closing])];
  const bold = /^\s*\*\*/u.test(first.length > 0 ? (lines[0] ?? "") : lastLine);
  const [choice] = said;
  if (said.length === 1 && choice !== undefined) return { choice, parsePath: bold ? "markdown" : "prose" };
  if (said.length > 1) return unread(`the output says several of: ${names(alternatives)}`);

  const lower = text.toLowerCase();
  const phrased = choicesOf(alternatives, ({ phrases = [] }) => phrases.some((phrase) => lower.includes(phrase)));
  const phrase = only(phrased);
  if (phrase !== null) return { choice: phrase, parsePath: "prose" };
  if (phrased.length > 1) return unread(`the output says several of: ${names(alternatives)}`);
  return unread(isRefusal(text) ? "the model declined to answer" : "no answer in the output");
}
