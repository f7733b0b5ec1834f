import { z } from "zod";
import { readJsonLines } from "../../../src/formats/jsonl.ts";
import { parseRecord } from "../../../src/formats/record-error.ts";
import { shippedPath } from "../../../src/package-root.ts";
import { type PythonValue, pythonText, pythonValueSchema } from "./values.ts";

/** A call of the function and what it must give. */
export interface FunctionTest {
  /** Positional arguments, as one list value. */
  readonly arguments: PythonValue;
  readonly expected: PythonValue;
}

export interface MbppProblem {
  readonly id: string;
  readonly prompt: string;
  readonly entryPoint: string;
  readonly solution: string;
  readonly atol: number;
  /** How results are compared: as values, as sets of members, or by being None or not. */
  readonly compare: "value" | "set" | "not-none";
  /** The tests of MBPP. */
  readonly base: readonly FunctionTest[];
  /** Those that EvalPlus added. */
  readonly plus: readonly FunctionTest[];
}

const testSchema = z
  .tuple([pythonValueSchema, pythonValueSchema])
  .transform(([args, expected]): FunctionTest => ({ arguments: args, expected }));

const problemSchema = z.object({
  id: z.string(),
  prompt: z.string(),
  entryPoint: z.string().regex(/^[A-Za-z_]\w*$/u),
  solution: z.string(),
  atol: z.number().nonnegative(),
  compare: z.enum(["value", "set", "not-none"]),
  base: z.array(testSchema),
  plus: z.array(testSchema),
});

let shipped: Promise<readonly MbppProblem[]> | undefined;

/** The shipped problems, read once. */
export function mbppProblems(): Promise<readonly MbppProblem[]> {
  shipped ??= readProblems(shippedPath("data", "mbppplus", "problems.jsonl.gz"));
  return shipped;
}

async function readProblems(file: string): Promise<MbppProblem[]> {
  const problems: MbppProblem[] = [];
  for await (const { line, value } of readJsonLines(file)) {
    problems.push(parseRecord(problemSchema, value, `${file}:${line}`));
  }
  return problems;
}

/** The call as Python: `similar_elements((3, 4), (5, 7))`. */
export function callText(problem: MbppProblem, test: FunctionTest): string {
  const [, values] = test.arguments;
  const list = Array.isArray(values) ? (values as readonly PythonValue[]) : [];
  return `${problem.entryPoint}(${list.map(pythonText).join(", ")})`;
}
