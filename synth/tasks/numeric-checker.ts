import type { Outcome, Task } from "../../src/trajectory/schema.ts";

/** The last number of a text, grouping commas and currency signs dropped; undefined if it has none. */
export function lastNumber(text: string): number | undefined {
  const numbers = text.match(/-?\d[\d,]*(?:\.\d+)?/gu);
  const last = numbers?.at(-1);
  return last === undefined ? undefined : Number(last.replace(/,/gu, ""));
}

/** Equality of numbers up to 1e-4 relative, as GSM8K's answers need. */
export function checkNumeric(task: Task, answer: string | undefined): Outcome {
  const expected = lastNumber(task.referenceAnswer ?? "");
  const actual = lastNumber(answer ?? "");
  const success =
    expected !== undefined &&
    actual !== undefined &&
    Math.abs(actual - expected) <= 1e-4 * Math.max(1, Math.abs(expected));
  return {
    success,
    checker: "numeric",
    ...(answer === undefined ? { detail: "the run gave no answer" } : { answer }),
  };
}
