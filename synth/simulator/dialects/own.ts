import { lengthOf } from "../layout.ts";
import type { LogLine } from "../log-state.ts";
import { rephrasing } from "../rephrase.ts";
import type { Dialect, Role } from "./dialect.ts";

/** The prompts of rootstep's in-process system and of its analyzer, the placebo's among them. */
export const own: Dialect = {
  id: "rootstep",
  read(request) {
    const rephrased = rephrasing(request);
    if (rephrased !== undefined) return { kind: "direct", reply: { content: rephrased } };
    const system = request.messages[0]?.content ?? "";
    const user = request.messages.at(-1)?.content ?? "";
    const problem = between(user, "Problem: ", "\n\n");
    if (problem === undefined) return undefined;
    if (system.startsWith("You are the analyzer")) {
      const step = /^Step under examination: (\d+)/mu.exec(user)?.[1];
      return step === undefined ? undefined : { kind: "correction", problem, step: Number(step) };
    }
    const turn = /\n\nTurn: (\w+)\. (.*)$/u.exec(user);
    const agent = roleNamed(turn?.[1]);
    if (agent === undefined) return undefined;
    const log = readLines(between(user, "\n\nLog:\n", "\n\nTurn:") ?? "");
    const final = turn?.[2]?.includes("final") === true;
    return { kind: "turn", agent, problem, log, final, length: lengthOf, dress: (content) => ({ content }) };
  },
};

function roleNamed(name: string | undefined): Role | undefined {
  return name === "planner" || name === "solver" || name === "verifier" ? name : undefined;
}

function readLines(log: string): LogLine[] {
  const lines: LogLine[] = [];
  for (const line of log.split("\n")) {
    const [, agent, content] = /^\d+ (\w+): (.*)$/u.exec(line) ?? [];
    if (agent !== undefined && content !== undefined) lines.push({ agent, content });
  }
  return lines;
}

function between(text: string, from: string, to: string): string | undefined {
  const start = text.indexOf(from);
  if (start < 0) return undefined;
  const end = text.indexOf(to, start + from.length);
  return text.slice(start + from.length, end < 0 ? undefined : end);
}
