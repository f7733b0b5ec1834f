import { ComputeEngine } from "@cortex-js/compute-engine";
import { isRecord } from "../../../src/is-record.ts";
import { stream } from "../../../src/random.ts";

/** Whether two things are the same; `undecided` where that cannot be told, never in place of `different`. */
export type Equality = "equal" | "different" | "undecided";

const engine = new ComputeEngine();

/** What is evaluated: everything else, and numbers out of bounds, stays undecided, so no answer can make the checker hang. */
const OPERATORS = new Set(
  "Add Multiply Negate Subtract Divide Rational Power Square Sqrt Root Log Ln Lb Exp Sin Cos Tan Cot Sec Csc Arcsin Arccos Arctan Abs Factorial Complex Delimiter InvisibleOperator".split(
    " ",
  ),
);
const CONSTANTS = new Set(["Pi", "ExponentialE", "ImaginaryUnit"]);
const MOST_CHARACTERS = 400;
const LARGEST_EXPONENT = 1000;
const LARGEST_FACTORIAL = 100;

const POINTS = 12;
const FEWEST_POINTS = 4;
const TOLERANCE = 1e-9;

interface Expression {
  readonly json: unknown;
  readonly unknowns: readonly string[];
}

/** Compares two expressions: exactly equal, or of equal value at seeded points for every letter in them. */
export function compareValues(one: string, other: string): Equality {
  const [a, b] = [read(one), read(other)];
  if (a === undefined || b === undefined) return "undecided";
  const unknowns = [...new Set([...a.unknowns, ...b.unknowns])].sort();
  if (unknowns.length === 0) return closeness(valueAt(a, {}), valueAt(b, {}));
  let compared = 0;
  for (let point = 0; point < POINTS; point++) {
    const draws = stream("math-equality", point);
    const at = Object.fromEntries(unknowns.map((name) => [name, 0.5 + 2 * draws.next()]));
    const verdict = closeness(valueAt(a, at), valueAt(b, at));
    if (verdict === "different") return "different";
    if (verdict === "equal") compared++;
  }
  return compared >= FEWEST_POINTS ? "equal" : "undecided";
}

/** True where the text is an expression that can be evaluated. */
export function isExpression(text: string): boolean {
  return read(text) !== undefined;
}

function read(latex: string): Expression | undefined {
  if (latex === "" || latex.length > MOST_CHARACTERS) return undefined;
  const raw = engine.parse(latex, { canonical: false });
  if (!raw.isValid) return undefined;
  const names = new Set<string>();
  if (!isBounded(raw.json, names)) return undefined;
  return { json: raw.json, unknowns: [...names].sort() };
}

/** Checks the unevaluated tree, and gathers its letters. */
function isBounded(json: unknown, names: Set<string>): boolean {
  if (typeof json === "number") return Number.isFinite(json);
  if (isRecord(json)) return typeof json.num === "string" && json.num.length < 60 && /^[-+\d.eE]+$/u.test(json.num);
  if (typeof json === "string") {
    if (CONSTANTS.has(json)) return true;
    if (!/^[A-Za-z](?:_\w+)?$/u.test(json) && !/^[a-z]{3,7}$/u.test(json)) return false;
    names.add(json);
    return true;
  }
  if (!Array.isArray(json)) return false;
  const [operator, ...operands]: readonly unknown[] = json;
  if (typeof operator !== "string" || !OPERATORS.has(operator)) return false;
  if (operator === "Factorial" && !isSmall(operands[0], LARGEST_FACTORIAL)) return false;
  if (operator === "Power" && typeof operands[1] !== "string" && !isSmallExponent(operands[1])) return false;
  return operands.every((operand) => isBounded(operand, names));
}

const isSmall = (json: unknown, most: number): boolean => typeof json === "number" && Math.abs(json) <= most;

/** A number within bounds, or a tree without a tower of powers. */
function isSmallExponent(json: unknown): boolean {
  if (typeof json === "number") return Math.abs(json) <= LARGEST_EXPONENT;
  return !JSON.stringify(json).includes('"Power"') && !/\d{4,}/u.test(JSON.stringify(json));
}

interface ComplexNumber {
  readonly re: number;
  readonly im: number;
}

function valueAt({ json }: Expression, at: Readonly<Record<string, number>>): ComplexNumber | undefined {
  const value = engine
    .box(json as Parameters<typeof engine.box>[0])
    .subs(at)
    .N();
  const { re, im } = value;
  return Number.isFinite(re) && Number.isFinite(im) ? { re, im } : undefined;
}

function closeness(a: ComplexNumber | undefined, b: ComplexNumber | undefined): Equality {
  if (a === undefined || b === undefined) return "undecided";
  const size = Math.max(1, Math.hypot(b.re, b.im));
  return Math.hypot(a.re - b.re, a.im - b.im) <= TOLERANCE * size ? "equal" : "different";
}
