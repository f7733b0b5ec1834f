import { readFileSync } from "node:fs";
import { z } from "zod";
import { RootstepError } from "../../../src/errors.ts";
import { parseRecord } from "../../../src/formats/record-error.ts";
import { shippedPath } from "../../../src/package-root.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import { defaultSandbox } from "../../sandbox/remembered.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { pythonIn } from "../code-answer.ts";
import { ownRecords } from "../own-copy/records.ts";
import type { TaskSet } from "../task-set.ts";

const recordSchema = z.object({
  question_id: z.string().min(1),
  question: z.string(),
  solution: z.string(),
  test: z.string().min(1),
  subset: z.string().nullish(),
  style: z.string().nullish(),
});

const ABOUT = {
  name: "KodCode",
  getItFrom: "https://huggingface.co/datasets/KodCode/KodCode-V1 (CC BY-NC 4.0), a Parquet or JSONL file of it",
} as const;

const program = (file: string): string => readFileSync(shippedPath("synth", "tasks", "kodcode", file), "utf8");
const runners = { plain: program("runner.py"), pytest: program("pytest_runner.py") } as const;

/** Tests that are more than functions without parameters: pytest itself, its fixtures, classes of tests. */
const NEEDS_PYTEST = /\bpytest\b|^(?:async +)?def +test\w*\( *[^)\s]|^class +Test|^ *@\w+\.fixture\b/mu;

export const needsPytest = (test: string): boolean => NEEDS_PYTEST.test(test);

const lineSchema = z.union([
  z.strictObject({ tests: z.number().int() }),
  z.strictObject({ passed: z.string() }),
  z.strictObject({ failed: z.string(), why: z.string() }),
  z.strictObject({ fault: z.string() }),
  z.strictObject({ missing: z.string() }),
]);
type Line = z.infer<typeof lineSchema>;

const extraSchema = z.object({ test: z.string() });

/**
 * KodCode (Xu et al., 2025), from the user's copy: a question, and tests that import the answer as `solution`. Its tests share
 * a process with the code they test, so unlike MBPP+ a candidate that sets out to forge the report can; one that merely
 * exits, prints or raises cannot pass.
 */
export const kodcode: TaskSet = kodcodeIn(defaultSandbox);

function kodcodeIn(sandbox: Sandbox): TaskSet {
  return {
    id: "kodcode",
    title: "KodCode: programming questions with unit tests (your copy)",
    source: "KodCode/KodCode-V1",
    licence: "CC BY-NC 4.0",
    async load({ limit, path, onRefused }) {
      const tasks: Task[] = [];
      let hasPytest: boolean | undefined;
      for await (const { where, value } of ownRecords(path, ABOUT)) {
        if (tasks.length >= limit) break;
        const task = taskOf(parseRecord(recordSchema, value, where));
        if (needsPytest(testOf(task))) {
          hasPytest ??= await sandboxHasPytest(sandbox);
          if (!hasPytest) {
            onRefused?.({ id: task.id, why: WITHOUT_PYTEST });
            continue;
          }
        }
        tasks.push(task);
      }
      await sandbox.require();
      return tasks;
    },
    async check(task, answer) {
      const checker = "kodcode-tests";
      if (answer === undefined) return { success: false, checker, detail: "the run gave no answer" };
      const test = testOf(task);
      const code = pythonIn(answer);
      const runner = needsPytest(test) ? runners.pytest : runners.plain;
      const files = { "main.py": runner, "solution.py": code, "test_solution.py": test };
      const result = await sandbox.run({ files });
      const fault =
        result.ended === "exited" ? faultIn(result.stdout, task) : `the program met its limit: ${result.ended}`;
      return { success: fault === undefined, checker, answer: code, ...(fault === undefined ? {} : { detail: fault }) };
    },
    withSandbox: kodcodeIn,
  };
}

const WITHOUT_PYTEST = "its tests need pytest, which the sandbox's Python does not have";

async function sandboxHasPytest(sandbox: Sandbox): Promise<boolean> {
  const { stdout } = await sandbox.run({ files: { "main.py": "import pytest\nprint('has pytest')" } });
  return stdout.trim() === "has pytest";
}

/** @throws RootstepError CHECKER_FAILED */
function testOf(task: Task): string {
  const extra = extraSchema.safeParse(task.extra);
  if (extra.success) return extra.data.test;
  throw new RootstepError("CHECKER_FAILED", { what: `task ${task.id} has no tests` });
}

/** @throws RootstepError CHECKER_FAILED where the tests need what the sandbox has not, or are none */
function faultIn(stdout: string, task: Task): string | undefined {
  const lines = stdout.split("\n").flatMap((line) => (line === "" ? [] : [readLine(line)]));
  const [first, ...rest] = lines;
  if (first === undefined) return "the program ended before the tests";
  if ("missing" in first) {
    if (first.missing !== "pytest") return `the code needs the module ${first.missing}`;
    throw new RootstepError("CHECKER_FAILED", {
      what: `the tests of ${task.id} need pytest, which the sandbox's Python does not have`,
      hint: "Install it for the system's Python (`apt-get install python3-pytest`).",
    });
  }
  if ("fault" in first) return `the code does not run: ${first.fault}`;
  if (!("tests" in first)) return "the report is garbled";
  if (first.tests === 0) throw new RootstepError("CHECKER_FAILED", { what: `task ${task.id} holds no test function` });
  const failed = rest.find((line) => "failed" in line);
  if (failed !== undefined && "failed" in failed) return `${failed.failed}: ${failed.why}`;
  const passed = new Set(rest.flatMap((line) => ("passed" in line ? [line.passed] : [])));
  return passed.size === first.tests && rest.length === first.tests
    ? undefined
    : "the program ended before the last test";
}

function readLine(line: string): Line {
  try {
    const parsed = lineSchema.safeParse(JSON.parse(line));
    return parsed.success ? parsed.data : { fault: "the report is garbled" };
  } catch {
    return { fault: "the report is garbled" };
  }
}

function taskOf(record: z.infer<typeof recordSchema>): Task {
  const id = `kodcode-${record.question_id}`;
  return {
    id,
    text: record.question,
    referenceSolution: record.solution,
    source: "kodcode",
    groupId: id,
    extra: { kind: "code", subset: record.subset, style: record.style, test: record.test },
  };
}
