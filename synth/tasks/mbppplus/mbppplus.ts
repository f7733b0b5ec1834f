import { RootstepError } from "../../../src/errors.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import { defaultSandbox } from "../../sandbox/remembered.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { pythonIn } from "../code-answer.ts";
import type { TaskSet } from "../task-set.ts";
import { type MbppProblem, mbppProblems } from "./problems.ts";
import { runTests } from "./run-tests.ts";

/**
 * MBPP with the tests of EvalPlus (Austin et al., 2021; Liu et al., 2023): one Python function per task, checked in the
 * sandbox on all tests of MBPP and those of EvalPlus that ship (see data/mbppplus/README.md for what does not).
 */
export const mbppPlus: TaskSet = mbppPlusIn(defaultSandbox);

function mbppPlusIn(sandbox: Sandbox): TaskSet {
  return {
    id: "mbppplus",
    title: "MBPP+: short Python functions with many tests",
    source: "evalplus/mbppplus_release v0.2.0, MBPP of google-research",
    licence: "Apache-2.0 (tests), CC BY 4.0 (MBPP)",
    async load({ limit }) {
      await sandbox.require();
      return (await mbppProblems()).slice(0, limit).map(taskOf);
    },
    async check(task, answer) {
      const checker = "mbppplus-tests";
      if (answer === undefined) return { success: false, checker, detail: "the run gave no answer" };
      const problem = (await mbppProblems()).find(({ id }) => taskId(id) === task.id);
      if (problem === undefined) {
        throw new RootstepError("CHECKER_FAILED", { what: `there are no tests for task ${task.id}` });
      }
      const code = pythonIn(answer);
      const { passed, fault } = await runTests(problem, code, sandbox);
      return { success: passed, checker, answer: code, ...(fault === undefined ? {} : { detail: fault }) };
    },
    withSandbox: mbppPlusIn,
  };
}

const taskId = (id: string): string => id.toLowerCase().replace("/", "-");

function taskOf(problem: MbppProblem): Task {
  return {
    id: taskId(problem.id),
    text: problem.prompt,
    referenceSolution: problem.solution,
    source: "mbppplus",
    groupId: taskId(problem.id),
    extra: { kind: "code", entryPoint: problem.entryPoint },
  };
}
