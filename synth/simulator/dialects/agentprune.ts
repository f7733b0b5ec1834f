import { type Calculation, formatNumber } from "../../tasks/calculations.ts";
import { lastNumber } from "../../tasks/numeric-checker.ts";
import { rightUtterance, type Utterance, write } from "../continuation.ts";
import { type LogLine, readLog } from "../log-state.ts";
import type { Dialect, Reading, Reply } from "./dialect.ts";

/** The agents of AgentPrune's GSM8K graph, in the order of its cycle of roles, by what their system prompts begin with. */
const AGENTS = [
  { name: "math-solver", begins: "You are a math expert." },
  { name: "mathematical-analyst", begins: "You are a mathematical analyst." },
  { name: "programming-expert", begins: "You are a programming expert." },
  { name: "inspector", begins: "You are an Inspector." },
  { name: "decision", begins: "You are the top decision-maker." },
] as const;
const PROGRAMMER = 2;
const DECISION = 4;

/** Where the question ends: nothing but these phrases of its agents sets it apart from what follows. */
const QUESTION_ENDS =
  /\(Hint: The answer is near to|At the same time, there are the following|In the last round of dialogue|\.\n At the same time, the output/u;

/** AgentPrune's own prompts (yanweiyue/AgentPrune, its GSM8K prompt set and FinalRefer). */
export const agentprune: Dialect = {
  id: "agentprune",
  read(request) {
    const [system, user] = request.messages;
    if (request.messages.length !== 2 || system?.role !== "system" || user?.role !== "user") return undefined;
    const position = AGENTS.findIndex(({ begins }) => system.content.startsWith(begins));
    if (position < 0) return undefined;
    // Before the question stand worked examples, in the same form.
    const beginning = position === DECISION ? "The task is:\n\n " : "\n\nQ:";
    const from = user.content.lastIndexOf(beginning);
    if (from < 0) return undefined;
    const rest = user.content.slice(from + beginning.length);
    const end = QUESTION_ENDS.exec(rest);
    const problem = rest.slice(0, end?.index).trim();
    const shown = end === null ? "" : rest.slice(end.index + end[0].length);
    return answering(position, problem, shown);
  },
};

/** Who sees no other's answer works it out, calculation by calculation; who does goes by the last one shown. */
function answering(position: number, problem: string, shown: string): Reading {
  const latest = latestAnswer(shown);
  return {
    kind: "composed",
    agent: AGENTS[position]?.name ?? "agent",
    problem,
    length: (calculations) => DECISION * calculations.length + 1,
    compose(calculations, say) {
      const first = position * calculations.length;
      if (latest === undefined) return dressed(position, workedOut(calculations, first, say));
      const agreed = say({ kind: "check", final: true, value: latest }, first);
      return dressed(position, { lines: [], value: agreed.kind === "check" ? agreed.value : latest });
    },
  };
}

/** The last answer among the hints (`near to 24 72).`) or the other agents' texts. */
function latestAnswer(shown: string): number | undefined {
  const hints = /^\s*([^()]*)\)\.$/u.exec(shown)?.[1];
  if (hints !== undefined) return lastNumber(hints);
  const stated = [...shown.matchAll(/[Tt]he answer is (-?\d[\d,]*(?:\.\d+)?)/gu)].at(-1)?.[1];
  return stated === undefined ? undefined : lastNumber(stated);
}

interface WorkedOut {
  readonly lines: readonly string[];
  readonly value: number;
}

function workedOut(
  calculations: readonly Calculation[],
  first: number,
  say: (right: Utterance, step: number) => Utterance,
): WorkedOut {
  const log: LogLine[] = [];
  for (const [index] of calculations.entries()) {
    const plan = rightUtterance("planner", calculations, readLog(log), false);
    if (plan !== undefined) log.push({ agent: "planner", content: write(plan) });
    const solution = rightUtterance("solver", calculations, readLog(log), false);
    if (solution !== undefined) log.push({ agent: "solver", content: write(say(solution, first + index)) });
  }
  const lines = log.filter(({ agent }) => agent === "solver").map(({ content }) => content);
  return { lines, value: readLog(log).latest ?? Number.NaN };
}

/** The last line in the form AgentPrune looks for; the programming expert's answer is code that it executes. */
function dressed(position: number, { lines, value }: WorkedOut): Reply {
  const answer = formatNumber(value);
  if (position === PROGRAMMER) {
    const comments = lines.map((line) => `# ${line}\n`).join("");
    return { content: `\`\`\`python\n${comments}answer = ${answer}\n\`\`\`` };
  }
  return { content: [...lines, `The answer is ${answer}`].join("\n") };
}
