import type { ChatRequest } from "../../../src/models/chat-model.ts";
import type { LogLine } from "../log-state.ts";
import type { Dialect, DirectReading, Reading, Reply } from "./dialect.ts";
import { lengthWithOneCheck, linesIn, nextSpeaker, plainTurn, problemIn, roleIn, shownTo } from "./team-lines.ts";

/**
 * smolagents: the manager plans and hands each plan to its managed agent `solver` as the end of a task, later all of it to
 * `verifier`; these say their line by `final_answer`, in code or as a tool call.
 */
export const smolagents: Dialect = {
  id: "smolagents",
  read(request) {
    const system = request.messages.find(({ role }) => role === "system")?.content ?? "";
    const agent = roleIn(system);
    const problem = problemIn(shownTo(request));
    if (agent === undefined || problem === undefined) return undefined;
    const offered = new Set(request.tools?.map(({ name }) => name));
    if (agent === "planner") return offered.has("solver") ? manage(request, problem) : undefined;
    const dress = offered.has("final_answer") ? byTool : system.includes("final_answer(") ? byCode : undefined;
    if (dress === undefined) return undefined;
    const log = linesIn(shownTo(request));
    return { ...plainTurn(agent, problem, log), dress };
  },
};

const byTool = (line: string): Reply => ({
  content: "",
  toolCalls: [{ name: "final_answer", arguments: { answer: line } }],
});

const byCode = (line: string): Reply => ({
  content: `Thought: I carry out the latest plan.\n<code>\nfinal_answer(${JSON.stringify(line)})\n</code>`,
});

function manage(request: ChatRequest, problem: string): Reading {
  const log = saidIn(request);
  const task = (line: string): string =>
    [`Problem: ${problem}`, "", ...log.map(({ content }) => content), line].join("\n").trimEnd();
  const handTo = (name: string, line: string): Reply => ({
    content: "",
    toolCalls: [{ name, arguments: { task: task(line) } }],
  });
  const move = (reply: Reply): DirectReading => ({ kind: "direct", reply });
  switch (nextSpeaker(log)) {
    case "planner": {
      const dress = (line: string): Reply => handTo("solver", line);
      return { kind: "turn", agent: "planner", problem, log, final: false, length: lengthWithOneCheck, dress };
    }
    case "solver": // its report was no line: once more
      return move(handTo("solver", ""));
    case "verifier":
      return move(handTo("verifier", ""));
    case undefined:
      return move(byTool(log.at(-1)?.content ?? ""));
  }
}

/** The manager's memory tells each call with the whole task it passed on: of that only the end is new. */
function saidIn(request: ChatRequest): readonly LogLine[] {
  return request.messages.flatMap(({ role, content, toolCalls = [] }) => {
    if (role === "system") return [];
    const lines = linesIn([content, ...toolCalls.map(({ arguments: text }) => text)]);
    return role === "assistant" ? lines.filter(({ agent }) => agent === "planner").slice(-1) : lines;
  });
}
