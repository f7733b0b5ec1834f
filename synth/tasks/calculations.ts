/**
 * A worked solution as a chain of binary calculations: what a planner names and a solver computes.
 *
 * GSM8K marks every calculation of its solutions (`<<48/2=24>>`). Each marked expression is split into binary
 * operations; an operand that equals an earlier result refers to it, so that a wrong result upstream carries on.
 */

export type Operator = "+" | "-" | "*" | "/";

export type Operand =
  | { readonly kind: "number"; readonly value: number }
  /** The latest value stated in the log. */
  | { readonly kind: "previous" }
  /** Result of calculation `index` (1-based, as written in the log). */
  | { readonly kind: "result"; readonly index: number };

export interface Calculation {
  readonly left: Operand;
  readonly operator: Operator;
  readonly right: Operand;
}

/** Applies an operator. Division by zero gives a non-finite number, which callers refuse. */
export function apply(operator: Operator, left: number, right: number): number {
  switch (operator) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "/":
      return left / right;
  }
}

/** A number as the log writes it: no grouping, at most six decimals, no trailing zeros. */
export function formatNumber(value: number): string {
  return String(Number(value.toFixed(6)));
}

export function formatOperand(operand: Operand): string {
  switch (operand.kind) {
    case "number":
      return formatNumber(operand.value);
    case "previous":
      return "previous";
    case "result":
      return `result ${operand.index}`;
  }
}

/** `16 - 3`, `previous * 2`, `result 1 + previous`. */
export function formatCalculation({ left, operator, right }: Calculation): string {
  return `${formatOperand(left)} ${operator} ${formatOperand(right)}`;
}

const CALCULATION = /^(previous|result \d+|-?\d+(?:\.\d+)?) ([-+*/]) (previous|result \d+|-?\d+(?:\.\d+)?)$/u;

/** Reads what `formatCalculation` writes; undefined for anything else. */
export function parseCalculation(text: string): Calculation | undefined {
  const [, left, operator, right] = CALCULATION.exec(text.trim()) ?? [];
  if (left === undefined || right === undefined || !isOperator(operator)) return undefined;
  return { left: parseOperand(left), operator, right: parseOperand(right) };
}

function parseOperand(text: string): Operand {
  if (text === "previous") return { kind: "previous" };
  const index = /^result (\d+)$/u.exec(text)?.[1];
  return index === undefined ? { kind: "number", value: Number(text) } : { kind: "result", index: Number(index) };
}

function isOperator(text: string | undefined): text is Operator {
  return text === "+" || text === "-" || text === "*" || text === "/";
}

const MAX_CALCULATIONS = 24;

/**
 * The calculations of a GSM8K solution text, or undefined where it has none that hold: an annotation that is no
 * arithmetic, does not come out, or whose chain does not end in the stated answer (`#### 18`).
 */
export function calculationsOf(solution: string): readonly Calculation[] | undefined {
  const answer = Number(/####\s*([-\d.,]+)\s*$/u.exec(solution)?.[1]?.replace(/,/gu, "") ?? Number.NaN);
  const calculations: Calculation[] = [];
  const results: number[] = [];
  for (const [, marked = ""] of solution.matchAll(/<<([^>]*)>>/gu)) {
    const [expression = "", stated = ""] = marked.split("=");
    const tree = parseExpression(expression);
    if (tree === undefined) return undefined;
    const value = flatten(tree, calculations, results);
    if (value === undefined || !close(value, Number(stated))) return undefined;
  }
  const last = results.at(-1);
  if (last === undefined || !close(last, answer) || calculations.length > MAX_CALCULATIONS) return undefined;
  return calculations;
}

const close = (a: number, b: number): boolean => Math.abs(a - b) <= 1e-6 * Math.max(1, Math.abs(b));

type Expression = number | { readonly operator: Operator; readonly left: Expression; readonly right: Expression };

/** Appends the binary calculations of a tree, innermost first; undefined where a value is not finite. */
function flatten(tree: Expression, calculations: Calculation[], results: number[]): number | undefined {
  if (typeof tree === "number") return tree;
  const left = flatten(tree.left, calculations, results);
  const right = flatten(tree.right, calculations, results);
  if (left === undefined || right === undefined) return undefined;
  const value = apply(tree.operator, left, right);
  if (!Number.isFinite(value)) return undefined;
  calculations.push(
    previousFirst({ left: refer(left, results), operator: tree.operator, right: refer(right, results) }),
  );
  results.push(value);
  return value;
}

/** `2 * previous` as `previous * 2`: the value in hand comes first where the order does not matter. */
function previousFirst(calculation: Calculation): Calculation {
  const { left, operator, right } = calculation;
  const commutes = operator === "+" || operator === "*";
  return commutes && right.kind === "previous" ? { left: right, operator, right: left } : calculation;
}

function refer(value: number, results: readonly number[]): Operand {
  const index = results.findLastIndex((result) => close(result, value));
  if (index < 0) return { kind: "number", value };
  return index === results.length - 1 ? { kind: "previous" } : { kind: "result", index: index + 1 };
}

/** Recursive descent over + - * / and parentheses; undefined for anything else. */
function parseExpression(text: string): Expression | undefined {
  const tokens = text.replace(/\s+/gu, "").match(/\d+(?:\.\d+)?|\.\d+|[-+*/()]|./gu) ?? [];
  let position = 0;
  const binary = (next: () => Expression | undefined, operators: string) => (): Expression | undefined => {
    let left = next();
    for (;;) {
      const operator = tokens[position];
      if (left === undefined || !isOperator(operator) || !operators.includes(operator)) return left;
      position++;
      const right = next();
      if (right === undefined) return undefined;
      left = { operator, left, right };
    }
  };
  const factor = (): Expression | undefined => {
    const token = tokens[position++];
    if (token === undefined) return undefined;
    if (/^[\d.]+$/u.test(token)) return Number(token);
    if (token !== "(") return undefined;
    const inner = sum();
    return tokens[position++] === ")" ? inner : undefined;
  };
  const product = binary(factor, "*/");
  const sum: () => Expression | undefined = binary(product, "+-");
  const tree = sum();
  return position === tokens.length ? tree : undefined;
}
