import { RootstepError } from "../../../src/errors.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import { pythonIn } from "../../tasks/code-answer.ts";
import { callText, type MbppProblem } from "../../tasks/mbppplus/problems.ts";
import { pythonText } from "../../tasks/mbppplus/values.ts";
import { mutatePython } from "./mutations.ts";
import type { Player, Turn } from "./player.ts";
import type { LogEntry } from "./team-prompt.ts";

/** Steps of every run: coder, tester, coder, tester, coder. */
const LENGTH = 5;
const FAILED = /`assert (.*) == (.*?)` (?:fails|raises)/gu;

/**
 * Plays coder and tester on MBPP+ problems. The coder writes the reference solution; it believes the tester: where an
 * assertion failed, it repairs its code, or, if the assertion itself is wrong, gives in to it. The tester asserts one of the
 * problem's base tests per round, so many wrong functions slip through, as they do through few tests.
 */
export function coderTesterPlayer(problems: readonly MbppProblem[]): Player {
  const byTask = new Map(problems.map((problem) => [problem.id.toLowerCase().replace("/", "-"), problem]));
  const problemOf = (task: Task): MbppProblem => {
    const problem = byTask.get(task.id);
    if (problem === undefined) {
      throw new RootstepError("SIMULATOR_CONFUSED", {
        what: `the simulator plays coder and tester on MBPP+ only, not on ${task.id}`,
        hint: "Choose tasks.set mbppplus, or another model.",
      });
    }
    return problem;
  };
  return {
    length: () => LENGTH,
    right({ task, agent, log }) {
      const problem = problemOf(task);
      return agent === "tester" ? assertion(problem, roundOf(log)) : fenced(revised(problem, log));
    },
    wrong({ task, agent, log }, right, random) {
      const problem = problemOf(task);
      if (agent === "tester") return wrongAssertion(problem, roundOf(log));
      const mutated = mutatePython(pythonIn(right), random);
      return mutated === undefined ? undefined : fenced(mutated);
    },
    correction({ task, agent, log }: Turn) {
      const problem = problemOf(task);
      return agent === "tester" ? assertion(problem, roundOf(log)) : fenced(problem.solution);
    },
  };
}

const fenced = (code: string): string => `\`\`\`python\n${code}\n\`\`\``;

const roundOf = (log: readonly LogEntry[]): number => log.filter(({ agent }) => agent === "tester").length;

function assertion(problem: MbppProblem, round: number): string {
  const test = problem.base[round % problem.base.length];
  return test === undefined ? fenced("") : fenced(`assert ${callText(problem, test)} == ${pythonText(test.expected)}`);
}

/** What another test gives, asserted of this one: the problem misread. */
function wrongAssertion(problem: MbppProblem, round: number): string | undefined {
  const test = problem.base[round % problem.base.length];
  if (test === undefined) return undefined;
  const right = pythonText(test.expected);
  const other = problem.base.map(({ expected }) => pythonText(expected)).find((text) => text !== right);
  return other === undefined ? undefined : fenced(`assert ${callText(problem, test)} == ${other}`);
}

/** The function as the log calls for it. */
function revised(problem: MbppProblem, log: readonly LogEntry[]): string {
  const code = log.findLast(({ agent }) => agent === "coder")?.content;
  if (code === undefined) return problem.solution;
  const said = log.at(-1)?.observations.join(" ") ?? "";
  if (/does not run|was stopped/u.test(said)) return problem.solution;
  const failed = [...said.matchAll(FAILED)].map(([, call = "", result = ""]) => ({ call, result }));
  if (failed.length === 0) return pythonIn(code);
  const wrong = failed.find(({ call, result }) => !isTrue(problem, call, result));
  return wrong === undefined ? problem.solution : givenIn(problem, pythonIn(code), wrong);
}

function isTrue(problem: MbppProblem, call: string, result: string): boolean {
  return problem.base.some((test) => callText(problem, test) === call && pythonText(test.expected) === result);
}

/** The function bent to a wrong assertion. */
function givenIn({ entryPoint }: MbppProblem, code: string, wrong: { call: string; result: string }): string {
  const values = wrong.call.slice(entryPoint.length + 1, -1);
  return `${code}\n\nworked_out = ${entryPoint}\n\ndef ${entryPoint}(*values):\n    if values == (${values},):\n        return ${wrong.result}\n    return worked_out(*values)`;
}
