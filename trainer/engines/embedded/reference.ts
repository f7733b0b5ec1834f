import type { Task } from "../../../src/trajectory/schema.ts";
import { apply } from "./chain-arithmetic.ts";
import { hasToken, MAX_VALUE, OPERATORS, type Operation } from "./vocabulary.ts";

/** The reference solution of a chain task: a start value and an operation on each value before. */
export interface Reference {
  readonly start: number;
  readonly operations: readonly Operation[];
}

/** Most calculations a chain may have; four give ten steps. */
export const MAX_CALCULATIONS = 4;

/** A calculation as written, and where it stands in the record. */
interface Written {
  readonly text: string;
  readonly where: string;
}

/**
 * The reference calculations of a task: `task.extra.calculations` ("16 - 3", then "previous * 2"), or where a record does not carry
 * them the marks of its reference solution (`<<16-3=13>>`, GSM8K's way).
 *
 * @param refuse called with the place and the reason where they do not fit
 */
export function readReference(task: Task, refuse: (where: string, what: string) => never): Reference {
  const written = writtenCalculations(task, refuse);
  if (written.length === 0) {
    return refuse("task", "it shows no reference calculations, and this tracer starts from the reference solution");
  }
  if (written.length > MAX_CALCULATIONS) {
    return refuse("task", `${written.length} reference calculations, at most ${MAX_CALCULATIONS} fit`);
  }
  const operations: Operation[] = [];
  let start: number | undefined;
  let value: number | undefined;
  for (const [index, { text, where }] of written.entries()) {
    const match = /^(\S+) ([-+*/]) (\d+)$/u.exec(text);
    const operation = parseOperation(match?.[2], match?.[3]);
    if (index === 0) {
      start = parseValue(match?.[1]);
      value = start;
    }
    const isChain = index === 0 || match?.[1] === "previous";
    if (operation === undefined || value === undefined || !isChain) {
      return refuse(
        where,
        `"${text.slice(0, 60)}" is not "A op B", then "previous op B", in numbers that have a token`,
      );
    }
    value = apply(value, operation);
    if (value === undefined) return refuse(where, `"${text}" does not give a whole number of 0–${MAX_VALUE}`);
    operations.push(operation);
  }
  return start === undefined ? refuse("task", "it shows no start value") : { start, operations };
}

function writtenCalculations(task: Task, refuse: (where: string, what: string) => never): Written[] {
  const calculations = task.extra?.calculations;
  if (calculations === undefined) return markedCalculations(task.referenceSolution ?? "", refuse);
  if (!Array.isArray(calculations)) return refuse("task.extra.calculations", "it is not a list");
  return calculations.map((calculation: unknown, index) => ({
    text: String(calculation),
    where: `task.extra.calculations[${index}]`,
  }));
}

/**
 * `<<16-3-4=9>>` as "16 - 3", "previous - 4". An expression must go on from the value before; where that stands second in a sum or
 * product (`<<2+9=11>>` after 9), the two change places. Marks without an operation (`<<9=9>>`) say nothing.
 */
function markedCalculations(solution: string, refuse: (where: string, what: string) => never): Written[] {
  const written: Written[] = [];
  let value: number | undefined;
  for (const [mark, expression = "", result = ""] of solution.matchAll(/<<([^<>=]*)=([^<>]*)>>/gu)) {
    const where = `task.referenceSolution ${mark}`;
    const [first = "", ...rest] = expression.replace(/\s+/gu, "").match(/[-+*/]?[^-+*/]+/gu) ?? [];
    if (rest.length === 0) continue;
    const terms = value === undefined ? rest : termsAfter(value, first, rest);
    const isMixed = /[-+].*[*/]/u.test(expression);
    if (terms === undefined || isMixed) {
      return refuse(where, "it does not go on from the value before, one operation after the other");
    }
    terms.forEach((term, index) => {
      const left = index === 0 && value === undefined ? first : "previous";
      written.push({ text: `${left} ${term.slice(0, 1)} ${term.slice(1)}`, where });
    });
    value = Number(result);
  }
  return written;
}

/** The terms of an expression as operations on the value before; undefined where it does not start from that value. */
function termsAfter(value: number, first: string, rest: readonly string[]): readonly string[] | undefined {
  if (Number(first) === value) return rest;
  const [second = "", ...others] = rest;
  const operator = second.slice(0, 1);
  const commutes = operator === "+" || operator === "*";
  return commutes && Number(second.slice(1)) === value ? [`${operator}${first}`, ...others] : undefined;
}

/** A value that has a token, as a record writes it; undefined otherwise. */
export function parseValue(text: string | undefined): number | undefined {
  if (text === undefined || !/^(?:0|[1-9]\d?)$/u.test(text)) return undefined;
  const value = Number(text);
  return value <= MAX_VALUE ? value : undefined;
}

/** An operation that has a token; undefined otherwise. */
export function parseOperation(operator: string | undefined, operand: string | undefined): Operation | undefined {
  const known = OPERATORS.find((candidate) => candidate === operator);
  if (known === undefined || operand === undefined || !/^[1-9]\d?$/u.test(operand)) return undefined;
  const operation = { operator: known, operand: Number(operand) };
  return hasToken(operation) ? operation : undefined;
}
