import { readFileSync } from "node:fs";
import type { ChatRequest } from "../../../src/models/chat-model.ts";
import { shippedPath } from "../../../src/package-root.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import { boxedIn } from "../../tasks/math/normalize.ts";
import { lastNumber } from "../../tasks/numeric-checker.ts";
import type { AgentSystem } from "../system.ts";

const AGENTS = ["planner", "solver", "verifier"] as const;
type Agent = (typeof AGENTS)[number];

/** GSM8K needs at most 12; a team whose planner never says `(last)` is stopped here and asked for its answer. */
const MAX_CALCULATIONS = 16;
/** The verifier looks in after every second calculation. */
const CHECK_EVERY = 2;

const instructions = Object.fromEntries(
  AGENTS.map((agent) => [
    agent,
    readFileSync(shippedPath("synth", "systems", "planner-solver-verifier", `${agent}.md`), "utf8").trim(),
  ]),
) as Record<Agent, string>;

/** Planner names a calculation, solver carries it out, verifier states the value now and then and the answer at the end. */
export const plannerSolverVerifier: AgentSystem = {
  id: "planner-solver-verifier",
  title: "planner, solver and verifier working through a problem one calculation at a time",
  agents: AGENTS,
  sideEffects: "none",
  stepPolicy: "per-call",
  async run(task, model, signal) {
    const log: string[] = [];
    const turn = async (agent: Agent, demand: string): Promise<string> => {
      const response = await model.complete(turnRequest(task, agent, log, demand), {
        agent,
        ...(signal === undefined ? {} : { signal }),
      });
      const line = response.content.replace(/<think>[\s\S]*?<\/think>/u, "").trim();
      log.push(`${log.length} ${agent}: ${line.replace(/\s*\n\s*/gu, " ")}`);
      return line;
    };
    for (let calculation = 1; calculation <= MAX_CALCULATIONS; calculation++) {
      const plan = await turn("planner", "Name the next calculation.");
      await turn("solver", "Carry out the latest plan.");
      if (/\(last\)\.?\s*$/u.test(plan)) break;
      if (calculation % CHECK_EVERY === 0) await turn("verifier", "State the current value.");
    }
    const verdict = await turn("verifier", "State the final answer.");
    return { answer: finalAnswer(verdict) };
  },
};

/** The formula that the verdict states (boxed, or after "is"), else its last number. */
function finalAnswer(verdict: string): string | undefined {
  const formula = boxedIn(verdict) ?? /final answer is:? *(.*?)\.?$/u.exec(verdict)?.[1];
  if (formula !== undefined && /[\\^([{]|[A-Za-z] *[-+=]|[-+*/=] *[A-Za-z]|\d *[a-z]$/u.test(formula)) return formula;
  const number = lastNumber(verdict);
  return number === undefined ? undefined : String(number);
}

/** What one agent is shown: its instructions, the problem, the log so far and what is wanted now. */
function turnRequest(task: Task, agent: Agent, log: readonly string[], demand: string): ChatRequest {
  return {
    messages: [
      { role: "system", content: instructions[agent] },
      { role: "user", content: `Problem: ${task.text}\n\nLog:\n${log.join("\n")}\n\nTurn: ${agent}. ${demand}` },
    ],
  };
}
