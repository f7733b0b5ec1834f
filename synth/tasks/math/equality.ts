import { normalizeLatex, withoutGrouping, withoutUnit } from "./normalize.ts";
import { compareValues, type Equality } from "./value.ts";

/**
 * Do two answers of MATH say the same? In turn: as written once normalised; part by part for tuples, intervals, sets, lists,
 * matrices and unions; by value for expressions; by the lines that they draw for equations.
 *
 * Sets and bare lists have no order, tuples, intervals and matrices do. Decimals are exact: 0.333 is not one third.
 */
export function compareAnswers(one: string, other: string): Equality {
  const [a, b] = [prepared(one), prepared(other)];
  if (a === b) return "equal";
  if (a === "" || b === "") return "different";
  return compareParts(a, b);
}

const prepared = (text: string): string => withoutGrouping(withoutUnit(normalizeLatex(text)));

function compareParts(a: string, b: string): Equality {
  if (a === b) return "equal";
  const [unionA, unionB] = [a.split(/\s*\\cup(?![A-Za-z])\s*/u), b.split(/\s*\\cup(?![A-Za-z])\s*/u)];
  if (unionA.length > 1 || unionB.length > 1) return unordered(unionA, unionB);
  const [signsA, signsB] = [bothSigns(a), bothSigns(b)];
  if (signsA !== undefined || signsB !== undefined) return unordered(signsA ?? listOf(a), signsB ?? listOf(b));
  const [groupA, groupB] = [grouped(a), grouped(b)];
  if (groupA !== undefined && groupB !== undefined) {
    if (groupA.open !== groupB.open || groupA.close !== groupB.close) return "different";
    return groupA.open === "\\{" ? unordered(groupA.parts, groupB.parts) : inOrder(groupA.parts, groupB.parts);
  }
  const [listA, listB] = [listOf(a), listOf(b)];
  if (listA.length > 1 || listB.length > 1) return unordered(listA, listB);
  if (groupA !== undefined || groupB !== undefined) return "different";
  return compareSingle(a, b);
}

function compareSingle(a: string, b: string): Equality {
  if (isWords(a) && isWords(b)) return plainWords(a) === plainWords(b) ? "equal" : "different";
  if (isWords(a) !== isWords(b)) return "different";
  if (isWhole(a) && isWhole(b)) return BigInt(a) === BigInt(b) ? "equal" : "different";
  const [sidesA, sidesB] = [sidesOf(a), sidesOf(b)];
  if (sidesA !== undefined && sidesB !== undefined) return compareEquations(sidesA, sidesB);
  return compareValues(withoutName(a, sidesA), withoutName(b, sidesB));
}

/** Whole numbers are compared digit by digit, however long. */
const isWhole = (text: string): boolean => /^-?\d+$/u.test(text);

/** `⟨east⟩`, or a word of letters that no formula has. */
const isWords = (text: string): boolean =>
  /^\u27e8.*\u27e9$/u.test(text) || /^[A-Za-z]{2,}(?: [A-Za-z]+)*$/u.test(text);
const plainWords = (text: string): string =>
  text
    .replace(/[\u27e8\u27e9()]/gu, "")
    .trim()
    .toLowerCase();

interface Sides {
  readonly left: string;
  readonly right: string;
}

function sidesOf(text: string): Sides | undefined {
  const [left, right, more] = text.split("=");
  return left === undefined || right === undefined || more !== undefined || /[<>\\]$/u.test(left)
    ? undefined
    : { left, right };
}

/** `x = 3` says what `3` says. */
function withoutName(text: string, sides: Sides | undefined): string {
  return sides !== undefined && /^[A-Za-z](?:\([a-z]\)|_\{?\w\}?)?$/u.test(sides.left) ? sides.right : text;
}

/** Two equations are the same if one is the other times a constant. Only an equal verdict is sure. */
function compareEquations(a: Sides, b: Sides): Equality {
  const [left, right] = [difference(a), difference(b)];
  if (compareValues(left, right) === "equal" || compareValues(left, `-(${right})`) === "equal") return "equal";
  if (a.left === b.left) return compareValues(a.right, b.right);
  return "undecided";
}

const difference = ({ left, right }: Sides): string => `(${left})-(${right})`;

/** `\pm` in front of or inside an expression stands for two. */
function bothSigns(text: string): readonly string[] | undefined {
  if (!text.includes("\\pm") || text.split("\\pm").length > 2) return undefined;
  return [text.replace(/\\pm\s*/u, text.startsWith("\\pm") ? "" : "+"), text.replace(/\\pm\s*/u, "-")];
}

interface Group {
  readonly open: string;
  readonly close: string;
  readonly parts: readonly string[];
}

const MATRIX = /^\\begin\{([a-z]*matrix)\}([\s\S]*)\\end\{\1\}$/u;

/** A tuple, an interval, a set or a matrix: a whole text between brackets with commas at the top. */
function grouped(text: string): Group | undefined {
  const matrix = MATRIX.exec(text)?.[2];
  if (matrix !== undefined) {
    const rows = matrix.split(/\\\\/u).map((row) => row.trim());
    const shape = rows.map((row) => row.split("&").length).join("x");
    return {
      open: `matrix ${shape}`,
      close: "",
      parts: rows.flatMap((row) => row.split("&")).map((part) => part.trim()),
    };
  }
  const open = /^(?:\\\{|[([])/u.exec(text)?.[0];
  const close = /(?:\\\}|[)\]])$/u.exec(text)?.[0];
  if (open === undefined || close === undefined || (open === "\\{") !== (close === "\\}")) return undefined;
  const inner = text.slice(open.length, -close.length);
  const parts = splitAtTop(inner);
  if (parts === undefined || (parts.length < 2 && open !== "\\{")) return undefined;
  return { open, close, parts };
}

/** The parts between top-level commas; undefined where brackets do not match. */
function splitAtTop(text: string): string[] | undefined {
  const parts = [""];
  let depth = 0;
  for (const character of text) {
    if ("([{".includes(character)) depth++;
    if (")]}".includes(character)) depth--;
    if (depth < 0) return undefined;
    if (character === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += character;
  }
  return depth === 0 ? parts.map((part) => part.trim()) : undefined;
}

const listOf = (text: string): readonly string[] =>
  splitAtTop(text.replace(/\s+(?:and|\u27e8and\u27e9|or|\u27e8or\u27e9)\s+/gu, ",")) ?? [text];

function inOrder(a: readonly string[], b: readonly string[]): Equality {
  if (a.length !== b.length) return "different";
  return all(a.map((part, at) => compareParts(part, b[at] ?? "")));
}

/** Each part of one has its partner in the other. */
function unordered(a: readonly string[], b: readonly string[]): Equality {
  if (a.length !== b.length) return "different";
  const left = [...b];
  let undecided = false;
  for (const part of a) {
    const verdicts = left.map((other) => compareParts(part, other));
    const at = verdicts.indexOf("equal");
    if (at >= 0) left.splice(at, 1);
    else if (verdicts.includes("undecided")) undecided = true;
    else return "different";
  }
  return undecided ? "undecided" : "equal";
}

function all(verdicts: readonly Equality[]): Equality {
  if (verdicts.includes("different")) return "different";
  return verdicts.includes("undecided") ? "undecided" : "equal";
}
