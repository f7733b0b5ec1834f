import type { ChatRequest } from "../../../src/models/chat-model.ts";
import type { Calculation } from "../../tasks/calculations.ts";
import type { LogLine } from "../log-state.ts";
import type { Role, TurnReading } from "./dialect.ts";

/**
 * The lines by which every shipped team works, whatever its framework: `Plan N: A op B`, `A op B = C`,
 * `Checked: the current value is V.` They are told apart by their form, so that it does not matter in which message, by
 * which name or inside which quotation a framework shows them.
 */
const LINE =
  /(Plan \d+: (?:previous|result \d+|-?\d+(?:\.\d+)?) [-+*/] (?:previous|result \d+|-?\d+(?:\.\d+)?)(?: \(last\))?)|(-?\d+(?:\.\d+)? [-+*/] -?\d+(?:\.\d+)? = -?\d+(?:\.\d+)?)|(Checked: the (?:current value|final answer) is -?\d+(?:\.\d+)?\.?)/gu;

/** The team's lines in these texts, in order. */
export function linesIn(texts: readonly string[]): readonly LogLine[] {
  const lines: LogLine[] = [];
  for (const text of texts) {
    for (const [content, plan, solution] of text.matchAll(LINE)) {
      lines.push({ agent: plan !== undefined ? "planner" : solution !== undefined ? "solver" : "verifier", content });
    }
  }
  return lines;
}

/** The role of a prompt from synth/systems/support/prompts; undefined where it is none. */
export function roleIn(text: string): Role | undefined {
  const role = /You are the (planner|solver|verifier) of a team that solves a word problem/u.exec(text)?.[1];
  return role === "planner" || role === "solver" || role === "verifier" ? role : undefined;
}

/** The problem that follows `Problem: `, to the blank line after it; also inside a JSON string. */
export function problemIn(texts: readonly string[]): string | undefined {
  for (const text of texts) {
    const found = /Problem: (.*?)(?:\n\n|\\n\\n|$)/su.exec(text)?.[1];
    if (found !== undefined) return found.trimEnd();
  }
  return undefined;
}

/** What the request shows beside its instructions, message by message. */
export function shownTo(request: ChatRequest): readonly string[] {
  return request.messages.filter(({ role }) => role !== "system").map(({ content }) => content);
}

/** True once the calculation marked `(last)` is carried out. */
export function isWorkedOut(lines: readonly LogLine[]): boolean {
  const last = lines.findLastIndex(({ agent }) => agent === "planner");
  return lines[last]?.content.endsWith("(last)") === true && lines.slice(last).some(({ agent }) => agent === "solver");
}

/** Who speaks next in a team of planner, solver and a verifier at the end; undefined once the final answer is stated. */
export function nextSpeaker(lines: readonly LogLine[]): Role | undefined {
  const latest = lines.at(-1);
  if (latest?.content.includes("final answer") === true) return undefined;
  if (latest?.agent === "planner") return "solver";
  return isWorkedOut(lines) ? "verifier" : "planner";
}

/** Turns of a clean run in which the verifier speaks once, at the end. */
export const lengthWithOneCheck = (calculations: readonly Calculation[]): number => 2 * calculations.length + 1;

/** The turn of a role that answers in plain text; `log` is the team's work so far. */
export function plainTurn(agent: Role, problem: string, log: readonly LogLine[]): TurnReading {
  return {
    kind: "turn",
    agent,
    problem,
    log,
    final: isWorkedOut(log),
    length: lengthWithOneCheck,
    dress: (content) => ({ content }),
  };
}
