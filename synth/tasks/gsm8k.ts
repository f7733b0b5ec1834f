import { z } from "zod";
import { readJsonLines } from "../../src/formats/jsonl.ts";
import { shippedPath } from "../../src/package-root.ts";
import type { Task } from "../../src/trajectory/schema.ts";
import { apply, type Calculation, calculationsOf, formatCalculation, type Operator } from "./calculations.ts";
import { checkNumeric } from "./numeric-checker.ts";
import type { TaskSet } from "./task-set.ts";

const recordSchema = z.object({ question: z.string(), answer: z.string() });

const FILES = ["test.jsonl", "train-200.jsonl"] as const;

/**
 * Real grade-school problems (Cobbe et al., 2021). Only those whose marked calculations hold and end in the stated
 * answer are used: 1,368 of 1,519. The others leave a last calculation unmarked, have none marked, or mark no arithmetic.
 */
export const gsm8k: TaskSet = {
  id: "gsm8k",
  title: "GSM8K grade-school word problems (test set and 200 of train)",
  source: "openai/grade-school-math",
  licence: "MIT",
  load: ({ limit }) => loadProblems(limit, () => true),
  check: checkNumeric,
};

/**
 * The GSM8K problems that the embedded tracer can read: a chain of two to four calculations, each on the value before,
 * with whole values of 0–59 and small operands.
 */
export const gsm8kSmall: TaskSet = {
  ...gsm8k,
  id: "gsm8k-small",
  title: "GSM8K problems that are chains of two to four calculations on whole numbers up to 59",
  load: ({ limit }) => loadProblems(limit, isSmallChain),
};

async function loadProblems(limit: number, wanted: (calculations: readonly Calculation[]) => boolean): Promise<Task[]> {
  const tasks: Task[] = [];
  for (const file of FILES) {
    for await (const { line, value } of readJsonLines(shippedPath("data", "gsm8k", file))) {
      if (tasks.length >= limit) return tasks;
      const { question, answer } = recordSchema.parse(value);
      const calculations = calculationsOf(answer);
      if (calculations === undefined || !wanted(calculations)) continue;
      const id = `gsm8k-${file.replace(/\W.*$/u, "")}-${String(line).padStart(4, "0")}`;
      tasks.push(taskOf(id, question, answer, calculations));
    }
  }
  return tasks;
}

const LARGEST_VALUE = 59;
const LARGEST_OPERAND: Record<Operator, number> = { "+": 12, "-": 12, "*": 9, "/": 9 };

function isSmallChain(calculations: readonly Calculation[]): boolean {
  if (calculations.length < 2 || calculations.length > 4) return false;
  let value = Number.NaN;
  return calculations.every(({ left, operator, right }, index) => {
    if (right.kind !== "number" || left.kind !== (index === 0 ? "number" : "previous")) return false;
    const start = left.kind === "number" ? left.value : value;
    value = apply(operator, start, right.value);
    const fits = [start, value].every((number) => Number.isInteger(number) && number >= 0 && number <= LARGEST_VALUE);
    return fits && Number.isInteger(right.value) && right.value >= 1 && right.value <= LARGEST_OPERAND[operator];
  });
}

function taskOf(id: string, question: string, solution: string, calculations: readonly Calculation[]): Task {
  return {
    id,
    text: question,
    referenceAnswer: (solution.split("####")[1] ?? "").trim(),
    referenceSolution: solution,
    source: "gsm8k",
    groupId: id,
    extra: { calculations: calculations.map(formatCalculation) },
  };
}
