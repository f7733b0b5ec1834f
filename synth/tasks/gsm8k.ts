import { z } from "zod";
import { readJsonLines } from "../../src/formats/jsonl.ts";
import { shippedPath } from "../../src/package-root.ts";
import type { Task } from "../../src/trajectory/schema.ts";
import { calculationsOf, formatCalculation } from "./calculations.ts";
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
  async load({ limit }) {
    const tasks: Task[] = [];
    for (const file of FILES) {
      for await (const { line, value } of readJsonLines(shippedPath("data", "gsm8k", file))) {
        if (tasks.length >= limit) return tasks;
        const { question, answer } = recordSchema.parse(value);
        const task = taskOf(`gsm8k-${file.replace(/\W.*$/u, "")}-${String(line).padStart(4, "0")}`, question, answer);
        if (task !== undefined) tasks.push(task);
      }
    }
    return tasks;
  },
  check: checkNumeric,
};

function taskOf(id: string, question: string, solution: string): Task | undefined {
  const calculations = calculationsOf(solution);
  if (calculations === undefined) return undefined;
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
