import type { ChatRequest } from "../../../src/models/chat-model.ts";
import { rightUtterance, write } from "../continuation.ts";
import { type LogLine, readLog } from "../log-state.ts";
import type { Dialect, Reading, Reply } from "./dialect.ts";
import { lengthWithOneCheck, linesIn, problemIn, roleIn, shownTo } from "./team-lines.ts";

const FINAL_TASK = "State the final answer.";

/** The four prompts of CAMEL's Workforce by what is in their templates (camel/societies/workforce/prompts.py, 0.2.90). */
export const camelWorkforce: Dialect = {
  id: "camel-workforce",
  read(request) {
    const prompt = shownTo(request).at(-1) ?? "";
    if (prompt.startsWith("You need to either decompose a complex task or enhance a simple one")) return plan(prompt);
    if (prompt.startsWith("You need to assign multiple tasks to worker nodes")) return assignment(prompt);
    if (prompt.startsWith("You are analyzing a task to evaluate its quality")) return approval();
    if (prompt.startsWith("You need to process one given task and return only a JSON result"))
      return work(request, prompt);
    return undefined;
  },
};

/** All plans at once; each stands where it would stand in a team that plans step by step. */
function plan(prompt: string): Reading | undefined {
  const problem = problemIn([prompt]);
  if (problem === undefined) return undefined;
  return {
    kind: "composed",
    agent: "planner",
    problem,
    length: lengthWithOneCheck,
    compose(calculations, say) {
      const plans: LogLine[] = [];
      for (const [index] of calculations.entries()) {
        const right = rightUtterance("planner", calculations, readLog(plans), false);
        if (right !== undefined) plans.push({ agent: "planner", content: write(say(right, 2 * index)) });
      }
      const tasks = [...plans.map(({ content }) => content), FINAL_TASK].map((text) => `<task>${text}</task>`);
      return { content: `<tasks>\n${tasks.join("\n")}\n</tasks>` };
    },
  };
}

/** Each task to the worker whose description fits, with all tasks before it as dependencies. */
function assignment(prompt: string): Reading | undefined {
  const idOf = (role: string): string | undefined => new RegExp(`<([^<>]+)>:<The ${role}:`, "u").exec(prompt)?.[1];
  const [solver, verifier] = [idOf("solver"), idOf("verifier")];
  if (solver === undefined || verifier === undefined) return undefined;
  const tasks = [...prompt.matchAll(/^Task ID: (\S+)\nContent: (.*)$/gmu)];
  const assignments = tasks.map(([, id, content], index) => ({
    task_id: id,
    assignee_id: content === FINAL_TASK ? verifier : solver,
    dependencies: tasks.slice(0, index).map(([, before]) => before),
  }));
  return { kind: "direct", reply: json({ assignments }) };
}

/** The planner as judge of a finished task lets everything pass: errors are the business of solver and verifier. */
function approval(): Reading {
  const verdict = { quality_score: 90, issues: [], recovery_strategy: null, modified_task_content: null };
  return { kind: "direct", reply: json({ reasoning: "The task is done as it was asked.", ...verdict }) };
}

/** A worker on one task: what the tasks before it gave is in the prompt. */
function work(request: ChatRequest, prompt: string): Reading | undefined {
  const agent = roleIn(request.messages[0]?.content ?? "");
  const problem = problemIn([prompt]);
  const before = section(prompt, "Here are results of some prerequisite tasks");
  const task = section(prompt, "Here is the content of the task that you need to do");
  if (agent === undefined || problem === undefined || before === undefined || task === undefined) return undefined;
  return {
    kind: "turn",
    agent,
    problem,
    log: linesIn([before, task]),
    final: agent === "verifier",
    length: lengthWithOneCheck,
    dress: (content) => json({ content, failed: false }),
  };
}

/** What stands between the two lines of equal signs after that heading. */
function section(prompt: string, heading: string): string | undefined {
  const from = prompt.indexOf(heading);
  if (from < 0) return undefined;
  return /={10,}\n(.*?)\n={10,}/su.exec(prompt.slice(from))?.[1];
}

const json = (value: unknown): Reply => ({ content: JSON.stringify(value) });
