import { z } from "zod";

/** A Python value as values.py writes it: its kind first. */
export type PythonValue =
  | readonly ["none"]
  | readonly ["match"]
  | readonly ["bool", boolean]
  /** Hexadecimal digits. */
  | readonly ["int", string]
  /** `repr`: inf and nan among them. */
  | readonly ["float", string]
  | readonly ["complex", string, string]
  | readonly ["str" | "bytes" | "other", string]
  | readonly ["list" | "tuple" | "set" | "deque", readonly PythonValue[]]
  | readonly ["dict", readonly (readonly [PythonValue, PythonValue])[]];

/** One check of its own in place of a recursive zod union: there are a hundred thousand values to read. */
export const pythonValueSchema = z.custom<PythonValue>(isPythonValue, "is no coded Python value");

function isPythonValue(value: unknown): value is PythonValue {
  if (!Array.isArray(value)) return false;
  const [kind, first, second]: readonly unknown[] = value;
  switch (kind) {
    case "none":
    case "match":
      return value.length === 1;
    case "bool":
      return value.length === 2 && typeof first === "boolean";
    case "int":
      return value.length === 2 && typeof first === "string" && /^-?[0-9a-f]+$/u.test(first);
    case "float":
    case "str":
    case "bytes":
    case "other":
      return value.length === 2 && typeof first === "string";
    case "complex":
      return value.length === 3 && typeof first === "string" && typeof second === "string";
    case "list":
    case "tuple":
    case "set":
    case "deque":
      return value.length === 2 && Array.isArray(first) && first.every(isPythonValue);
    case "dict":
      return value.length === 2 && Array.isArray(first) && first.every(isPair);
    default:
      return false;
  }
}

const isPair = (value: unknown): boolean => Array.isArray(value) && value.length === 2 && value.every(isPythonValue);

/** Equality as Python's `==` has it: 1 == 1.0 == True, lists and tuples differ, sets and dicts have no order. */
export function pythonEqual(a: PythonValue, b: PythonValue): boolean {
  if (isNumber(a) && isNumber(b)) return numbersEqual(a, b);
  switch (a[0]) {
    case "none":
      return b[0] === "none";
    case "str":
    case "bytes":
      return b[0] === a[0] && a[1] === b[1];
    case "list":
    case "tuple":
    case "deque":
      return b[0] === a[0] && sameInOrder(a[1], b[1]);
    case "set":
      return b[0] === "set" && sameMembers(a[1], b[1], pythonEqual);
    case "dict":
      return (
        b[0] === "dict" &&
        sameMembers(a[1], b[1], ([key, value], [otherKey, otherValue]) => {
          return pythonEqual(key, otherKey) && pythonEqual(value, otherValue);
        })
      );
    default:
      return false; // "other" and "match" equal nothing: what they say of themselves does not count
  }
}

function sameInOrder(a: readonly PythonValue[], b: readonly PythonValue[]): boolean {
  return a.length === b.length && a.every((one, at) => pythonEqual(one, b[at] ?? ["other", "nothing"]));
}

function sameMembers<T>(a: readonly T[], b: readonly T[], equal: (one: T, other: T) => boolean): boolean {
  if (a.length !== b.length) return false;
  const left = [...b];
  return a.every((one) => {
    const at = left.findIndex((other) => equal(one, other));
    if (at >= 0) left.splice(at, 1);
    return at >= 0;
  });
}

type PythonNumber = PythonValue & { readonly 0: "bool" | "int" | "float" | "complex" };

function isNumber(value: PythonValue): value is PythonNumber {
  return value[0] === "bool" || value[0] === "int" || value[0] === "float" || value[0] === "complex";
}

function numbersEqual(a: PythonNumber, b: PythonNumber): boolean {
  const [left, right] = [integerOf(a), integerOf(b)];
  if (left !== undefined && right !== undefined) return left === right;
  if (left !== undefined || right !== undefined) return false; // a whole number and one that is none
  const [realA, imaginaryA] = partsOf(a);
  const [realB, imaginaryB] = partsOf(b);
  return realA === realB && imaginaryA === imaginaryB;
}

/** The exact whole number a value stands for, if it does. */
function integerOf(value: PythonNumber): bigint | undefined {
  if (value[0] === "bool") return value[1] ? 1n : 0n;
  if (value[0] === "int") return value[1].startsWith("-") ? -BigInt(`0x${value[1].slice(1)}`) : BigInt(`0x${value[1]}`);
  const [real, imaginary] = partsOf(value);
  return imaginary === 0 && Number.isInteger(real) ? BigInt(real) : undefined;
}

function partsOf(value: PythonNumber): readonly [number, number] {
  switch (value[0]) {
    case "float":
      return [floatOf(value[1]), 0];
    case "complex":
      return [floatOf(value[1]), floatOf(value[2])];
    case "bool":
      return [Number(value[1]), 0];
    case "int":
      return [Number(integerOf(value)), 0];
  }
}

function floatOf(text: string): number {
  return Number(text.replace(/^(-?)inf$/u, "$1Infinity"));
}

/** True for a float, or a list or tuple of nothing but floats: what EvalPlus compares with a tolerance. */
export function isFloats(value: PythonValue): boolean {
  if (value[0] === "float") return true;
  return (
    (value[0] === "list" || value[0] === "tuple") && value[1].length > 0 && value[1].every(([kind]) => kind === "float")
  );
}

const RELATIVE_TOLERANCE = 1e-7;

/**
 * `np.allclose(actual, expected, rtol=1e-07, atol)` on values of one type: numbers, or lists of them, of one length.
 * Nan is close to nothing.
 */
export function pythonClose(actual: PythonValue, expected: PythonValue, atol: number): boolean {
  if (actual[0] !== expected[0]) return false;
  return closeParts(actual, expected, atol);
}

function closeParts(actual: PythonValue, expected: PythonValue, atol: number): boolean {
  if (isNumber(actual) && isNumber(expected)) {
    const [a, b] = [partsOf(actual), partsOf(expected)];
    if (a[0] === b[0] && a[1] === b[1]) return true;
    return Math.hypot(a[0] - b[0], a[1] - b[1]) <= atol + RELATIVE_TOLERANCE * Math.hypot(b[0], b[1]);
  }
  if (!isSequence(actual) || !isSequence(expected)) return false;
  if (actual[1].length !== expected[1].length) return false;
  return actual[1].every((one, at) => closeParts(one, expected[1][at] ?? ["other", "nothing"], atol));
}

function isSequence(value: PythonValue): value is readonly ["list" | "tuple", readonly PythonValue[]] {
  return value[0] === "list" || value[0] === "tuple";
}

/** As Python writes it, for people and for assertions in a test: `[1, (2.5, 'a')]`. */
export function pythonText(value: PythonValue): string {
  switch (value[0]) {
    case "none":
      return "None";
    case "match":
      return "<re.Match>";
    case "bool":
      return value[1] ? "True" : "False";
    case "int":
      return String(integerOf(value));
    case "float":
      return /^-?(?:inf|nan)$/u.test(value[1]) ? `float('${value[1]}')` : value[1];
    case "complex":
      return `complex(${value[1]}, ${value[2]})`;
    case "str":
      return JSON.stringify(value[1]);
    case "bytes":
      return `bytes.fromhex('${value[1]}')`;
    case "list":
      return `[${value[1].map(pythonText).join(", ")}]`;
    case "deque":
      return `deque([${value[1].map(pythonText).join(", ")}])`;
    case "tuple":
      return `(${value[1].map(pythonText).join(", ")}${value[1].length === 1 ? "," : ""})`;
    case "set":
      return value[1].length === 0 ? "set()" : `{${value[1].map(pythonText).join(", ")}}`;
    case "dict":
      return `{${value[1].map(([key, one]) => `${pythonText(key)}: ${pythonText(one)}`).join(", ")}}`;
    case "other":
      return `<${value[1]}>`;
  }
}
