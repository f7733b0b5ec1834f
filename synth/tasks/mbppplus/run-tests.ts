import { readFileSync } from "node:fs";
import { z } from "zod";
import { RootstepError } from "../../../src/errors.ts";
import { shippedPath } from "../../../src/package-root.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { callText, type FunctionTest, type MbppProblem } from "./problems.ts";
import { isFloats, type PythonValue, pythonClose, pythonEqual, pythonText, pythonValueSchema } from "./values.ts";

const program = (file: string): string => readFileSync(shippedPath("synth", "tasks", "mbppplus", file), "utf8");
const harness = program("harness.py");
const valueCoding = program("values.py");

const lineSchema = z.union([
  z.strictObject({ result: pythonValueSchema }),
  z.strictObject({ error: z.string() }),
  z.strictObject({ fault: z.string() }),
]);
type Line = z.infer<typeof lineSchema>;

/** What became of one candidate. */
export interface TestReport {
  readonly passed: boolean;
  /** The first thing that went wrong, in a sentence. */
  readonly fault?: string;
}

const LARGE_TOLERANCE = 1e-6;

/**
 * Calls a candidate's function on the tests inside the sandbox and compares what it gave out here, so that nothing the
 * candidate does to its own process (exit 0, a patched `==`, a printed "passed") makes it pass.
 *
 * @throws RootstepError SANDBOX_…
 */
export async function runTests(
  problem: MbppProblem,
  candidate: string,
  sandbox: Sandbox,
  signal?: AbortSignal,
): Promise<TestReport> {
  const tests = [...problem.base, ...problem.plus];
  const job = { entryPoint: problem.entryPoint, arguments: tests.map((test) => test.arguments) };
  const files = {
    "main.py": harness,
    "values.py": valueCoding,
    "job.json": JSON.stringify(job),
    "candidate.txt": candidate,
  };
  const result = await sandbox.run({ files }, signal);
  if (result.ended !== "exited") return { passed: false, fault: `the program met its limit: ${result.ended}` };
  const lines = result.stdout.split("\n").filter((line) => line !== "");
  const read = lines.map(readLine);
  const first = read[0];
  if (first !== undefined && "fault" in first) return { passed: false, fault: `the code does not run: ${first.fault}` };
  if (
    read.length === 0 &&
    /Traceback[\s\S]*harness|main\.py/u.test(result.stderr) &&
    !/candidate/u.test(result.stderr)
  ) {
    throw new RootstepError("CHECKER_FAILED", { what: `the test harness broke: ${result.stderr.trim().slice(-300)}` });
  }
  for (const [at, test] of tests.entries()) {
    const line = read[at];
    if (line === undefined || "fault" in line)
      return { passed: false, fault: `the program ended before test ${at + 1}` };
    const fault = "error" in line ? `raised ${line.error}` : faultOf(problem, test, line.result);
    if (fault !== undefined) return { passed: false, fault: `${callText(problem, test).slice(0, 200)} ${fault}` };
  }
  if (read.length > tests.length)
    return { passed: false, fault: "the program wrote more results than there are tests" };
  return { passed: true };
}

function readLine(line: string): Line | undefined {
  try {
    const parsed = lineSchema.safeParse(JSON.parse(line));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined; // the candidate wrote over the harness's lines: counts as no result
  }
}

/** EvalPlus's comparison (evalplus/eval: `unsafe_execute`); its tolerance does not spread from one test to the next here. */
function faultOf(problem: MbppProblem, { expected }: FunctionTest, actual: PythonValue): string | undefined {
  if (accepts(problem, expected, actual)) return undefined;
  return `gave ${pythonText(actual).slice(0, 100)} in place of ${pythonText(expected).slice(0, 100)}`;
}

function accepts(problem: MbppProblem, expected: PythonValue, actual: PythonValue): boolean {
  switch (problem.compare) {
    case "set": {
      const [one, other] = [membersOf(actual), membersOf(expected)];
      return one !== undefined && other !== undefined && pythonEqual(["set", one], ["set", other]);
    }
    case "not-none":
      return actual[0] === "bool"
        ? pythonEqual(actual, expected)
        : pythonEqual(["bool", actual[0] !== "none"], expected);
    case "value": {
      if (pythonEqual(actual, expected)) return true;
      const atol = problem.atol === 0 && isFloats(expected) ? LARGE_TOLERANCE : problem.atol;
      return atol !== 0 && pythonClose(actual, expected, atol);
    }
  }
}

/** `set(value)`: each member once. */
function membersOf(value: PythonValue): readonly PythonValue[] | undefined {
  if (value[0] !== "list" && value[0] !== "tuple" && value[0] !== "set") return undefined;
  const members: PythonValue[] = [];
  for (const one of value[1]) if (!members.some((other) => pythonEqual(one, other))) members.push(one);
  return members;
}
