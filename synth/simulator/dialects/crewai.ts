import type { ChatRequest } from "../../../src/models/chat-model.ts";
import type { Calculation } from "../../tasks/calculations.ts";
import { rightUtterance, write } from "../continuation.ts";
import { type LogLine, readLog } from "../log-state.ts";
import type { Dialect, Reading, Role } from "./dialect.ts";
import { linesIn, problemIn, shownTo } from "./team-lines.ts";

const BOARD = "write_on_board";

/** The shipped crew by the role in CrewAI's system prompt (`You are ROLE. …`), and the tool its solver is offered. */
export const crewai: Dialect = {
  id: "crewai",
  read(request) {
    const system = request.messages[0]?.content ?? "";
    const role = /^You are (planner|solver|checker|auditor|verifier)\. [\s\S]*\nYour personal goal is: /u.exec(
      system,
    )?.[1];
    const problem = problemIn(shownTo(request));
    if (role === undefined || problem === undefined) return undefined;
    switch (role) {
      case "planner":
        return plan(problem);
      case "solver":
        return working(request, problem);
      case "checker":
        return check(request, problem, { position: 0, final: false });
      case "auditor":
        return check(request, problem, { position: 1, final: false });
      default:
        return check(request, problem, { position: 2, final: true });
    }
  },
};

/** A plan and its working for each calculation, two checks, the answer. */
const length = (calculations: readonly Calculation[]): number => 2 * calculations.length + 3;

/** All plans at once; each stands where it would stand in a team that plans step by step. */
function plan(problem: string): Reading {
  return {
    kind: "composed",
    agent: "planner",
    problem,
    length,
    compose(calculations, say) {
      const plans: LogLine[] = [];
      for (const [index] of calculations.entries()) {
        const right = rightUtterance("planner", calculations, readLog(plans), false);
        if (right !== undefined) plans.push({ agent: "planner", content: write(say(right, 2 * index)) });
      }
      return { content: plans.map(({ content }) => content).join("\n") };
    },
  };
}

/** The next line of working by the tool; the board as it is once the plan is carried out. */
function working(request: ChatRequest, problem: string): Reading | undefined {
  if (request.tools?.some(({ name }) => name === BOARD) !== true) return undefined;
  const plans = linesBy("planner", shownTo(request));
  const board = request.messages.findLast(({ role }) => role === "tool")?.content ?? "";
  const done = linesBy("solver", [board]);
  const current = plans[done.length];
  if (current === undefined) return { kind: "direct", reply: { content: board } };
  return {
    kind: "turn",
    agent: "solver",
    problem,
    log: [...plans.slice(0, done.length).flatMap((line, index) => [line, ...done.slice(index, index + 1)]), current],
    final: false,
    length,
    // What is no line of working ends it: written on the board it would be asked for again and again.
    dress: (line) =>
      linesIn([line]).length === 0
        ? { content: line }
        : { content: "", toolCalls: [{ name: BOARD, arguments: { line } }] },
  };
}

/** The three that look at the working: side by side the first two, so their places in the run are fixed, not counted. */
function check(
  request: ChatRequest,
  problem: string,
  { position, final }: { readonly position: 0 | 1 | 2; readonly final: boolean },
): Reading {
  return {
    kind: "composed",
    agent: "verifier",
    problem,
    length,
    compose(calculations, say) {
      const right = rightUtterance("verifier", calculations, readLog(linesIn(shownTo(request))), final);
      if (right === undefined) return { content: "I cannot tell." };
      return { content: write(say(right, 2 * calculations.length + position)) };
    },
  };
}

const linesBy = (agent: Role, texts: readonly string[]): readonly LogLine[] =>
  linesIn(texts).filter((line) => line.agent === agent);
