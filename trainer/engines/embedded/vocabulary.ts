/**
 * The embedded tracer's tokens: one word, one token.
 *
 * Numbers are whole tokens by role, so that a step index, a value and an operation never share one: `@3` is step 3, `3` the
 * value, `+3` the operation. The order is part of every checkpoint; it must never change.
 */

export const AGENTS = ["planner", "solver", "verifier"] as const;
export type ChainAgent = (typeof AGENTS)[number];

export const OPERATORS = ["+", "-", "*", "/"] as const;
export type Operator = (typeof OPERATORS)[number];

/** One operation of a calculation, applied to the value before it. */
export interface Operation {
  readonly operator: Operator;
  readonly operand: number;
}

/** Largest value a step may name. Right values of a task rarely pass 59; the rest leaves room for wrong ones. */
export const MAX_VALUE = 69;
/** Most steps a run may have: four calculations. */
export const MAX_STEPS = 10;
/** Largest operand that has a token, per operator; the smallest is 1. */
const MAX_OPERAND: Readonly<Record<Operator, number>> = { "+": 22, "-": 22, "*": 12, "/": 12 };

const counted = (length: number, word: (i: number) => string): string[] => Array.from({ length }, (_, i) => word(i));

const words: readonly string[] = [
  ...["<pad>", "<gen>", "<eos>", "<think>", "</think>", "<answer>", "</answer>", "|", "bad"],
  ...AGENTS,
  ...counted(MAX_STEPS, (i) => `@${i}`),
  ...counted(MAX_VALUE + 1, String),
  ...OPERATORS.flatMap((operator) => counted(MAX_OPERAND[operator], (i) => `${operator}${i + 1}`)),
];

/** Rows of the embedding matrix: 9 marks, 3 agents, 10 step ids, 70 values, 68 operations. */
export const VOCABULARY_SIZE = words.length;

const ids: ReadonlyMap<string, number> = new Map(words.map((word, id) => [word, id]));

/** The token of a word, or undefined where there is none. */
export function tokenOf(word: string): number | undefined {
  return ids.get(word);
}

/** The word of a token; tokens without a word print as `<unused-N>`, which no answer format accepts. */
export function wordOf(token: number): string {
  return words[token] ?? `<unused-${token}>`;
}

/** The token of a word that is known to be there. */
function known(word: string): number {
  const token = ids.get(word);
  if (token === undefined) throw new RangeError(`no token for "${word}"`);
  return token;
}

export const TOKEN = {
  pad: known("<pad>"),
  /** Stands before the completion; never part of one. */
  begin: known("<gen>"),
  end: known("<eos>"),
  think: known("<think>"),
  thinkEnd: known("</think>"),
  answer: known("<answer>"),
  answerEnd: known("</answer>"),
  separator: known("|"),
  bad: known("bad"),
} as const;

/** Word of an operation: `-3`. */
export function operationWord(operation: Operation): string {
  return `${operation.operator}${operation.operand}`;
}

/** True where the operation has a token. */
export function hasToken(operation: Operation): boolean {
  return ids.has(operationWord(operation));
}
