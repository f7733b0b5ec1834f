import type { ChatRequest } from "../../src/models/chat-model.ts";
import type { LogLine } from "./log-state.ts";

/** What a prompt of rootstep's own system or analyzer asks for. */
export type Asked =
  | {
      readonly kind: "turn";
      readonly agent: string;
      readonly problem: string;
      readonly log: readonly LogLine[];
      readonly final: boolean;
    }
  | { readonly kind: "correction"; readonly problem: string; readonly step: number };

/** Reads a request as the simulator understands it; undefined for anything that is not one of rootstep's own prompts. */
export function readPrompt(request: ChatRequest): Asked | undefined {
  const system = request.messages[0]?.content ?? "";
  const user = request.messages.at(-1)?.content ?? "";
  const problem = between(user, "Problem: ", "\n\n");
  if (problem === undefined) return undefined;
  if (system.startsWith("You are the analyzer")) {
    const step = /^Step under examination: (\d+)/mu.exec(user)?.[1];
    return step === undefined ? undefined : { kind: "correction", problem, step: Number(step) };
  }
  const turn = /\n\nTurn: (\w+)\. (.*)$/u.exec(user);
  const agent = turn?.[1];
  if (agent === undefined) return undefined;
  const log = between(user, "\n\nLog:\n", "\n\nTurn:") ?? "";
  return { kind: "turn", agent, problem, log: readLines(log), final: turn?.[2]?.includes("final") === true };
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
