import type { ChatRequest } from "../../../src/models/chat-model.ts";
import type { Task } from "../../../src/trajectory/schema.ts";

/** One turn as the log shows it, with what the world answered to it. */
export interface LogEntry {
  readonly agent: string;
  readonly content: string;
  readonly observations: readonly string[];
}

/** A prompt of a team (systems/team.ts) or of the analyzer about one. */
export type TeamPrompt = {
  readonly task: Task;
  readonly agent: string;
  readonly log: readonly LogEntry[];
  /** What the world said before the first turn. */
  readonly opening: readonly string[];
} & ({ readonly kind: "turn"; readonly demand: string } | { readonly kind: "correction" });

const TURN = /\n\nTurn: (\w+)\. (.*)$/u;
const EXAMINED = /\n\nStep under examination: (\d+)\nAgent: (\w+)\n/u;
const LOG = "\n\nLog:\n";
/** What the hint arm adds to a step. The simulated agents go by the work that they see, not by what they are told. */
const HINT = /^\(Hint: the final answer is .*\)$/u;

/** Reads a prompt about one of these tasks; undefined for anything else. */
export function readTeamPrompt(request: ChatRequest, tasks: readonly Task[]): TeamPrompt | undefined {
  const user = request.messages.at(-1)?.content ?? "";
  const task = tasks.find(({ text }) => user.startsWith(`Problem: ${text}\n\n`));
  if (task === undefined) return undefined;
  const rest = user.slice(`Problem: ${task.text}`.length);
  const start = rest.indexOf(LOG);
  if (start < 0) return undefined;
  const tail = rest.slice(start + LOG.length - 1);
  const turn = TURN.exec(rest);
  if (turn?.[1] !== undefined) {
    const log = readLog(tail.slice(0, tail.lastIndexOf("\n\nTurn: ")));
    return { kind: "turn", task, agent: turn[1], demand: turn[2] ?? "", ...log };
  }
  const examined = EXAMINED.exec(rest);
  if (examined?.[2] === undefined) return undefined;
  return { kind: "correction", task, agent: examined[2], ...readLog(tail.slice(0, tail.indexOf("\n\nStep under"))) };
}

/** Entries begin with their number, in order; lines that begin with `> ` are what the world answered. */
function readLog(text: string): Pick<TeamPrompt, "log" | "opening"> {
  const opening: string[] = [];
  const entries: { agent: string; lines: string[]; observations: string[] }[] = [];
  for (const line of text.split("\n")) {
    const [, number, agent, content] = /^(\d+) (\w+): ?(.*)$/u.exec(line) ?? [];
    const last = entries.at(-1);
    if (agent !== undefined && Number(number) === entries.length) {
      entries.push({ agent, lines: [content ?? ""], observations: [] });
    } else if (/^> \w+: /u.test(line)) (last?.observations ?? opening).push(line.replace(/^> \w+: /u, ""));
    else last?.lines.push(line);
  }
  const log = entries.map(({ agent, lines, observations }) => {
    return {
      agent,
      content: lines
        .filter((line) => !HINT.test(line))
        .join("\n")
        .trim(),
      observations,
    };
  });
  return { log, opening };
}
