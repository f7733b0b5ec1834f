import type { ChatRequest } from "../../../src/models/chat-model.ts";
import type { Dialect } from "./dialect.ts";
import { isWorkedOut, lengthWithOneCheck, linesIn, problemIn, roleIn, shownTo } from "./team-lines.ts";

const SOLVE = "solve";

/** The AI SDK's program: a planner whose lines are calls of a tool, checkers that answer as JSON. Its solver writes text. */
export const aiSdk: Dialect = {
  id: "ai-sdk",
  read(request) {
    const system = request.messages[0]?.content ?? "";
    const agent = roleIn(system);
    const problem = problemIn(shownTo(request));
    if (agent === undefined || problem === undefined) return undefined;
    const turn = { kind: "turn", agent, problem, length: lengthWithOneCheck } as const;
    if (agent === "planner" && request.tools?.some(({ name }) => name === SOLVE) === true) {
      const log = linesIn(saidAndCalled(request));
      if (isWorkedOut(log)) return { kind: "direct", reply: { content: "The work is done." } };
      const dress = (plan: string) => ({ content: "", toolCalls: [{ name: SOLVE, arguments: { plan } }] });
      return { ...turn, log, final: false, dress };
    }
    if (agent === "verifier" && system.includes('Give your line as JSON: {"statement": ')) {
      const log = linesIn(shownTo(request));
      const dress = (statement: string) => ({ content: JSON.stringify({ statement }) });
      return { ...turn, log, final: isWorkedOut(log), dress };
    }
    return undefined;
  },
};

/** The planner's lines stand in the arguments of its calls, the solver's in what came back. */
function saidAndCalled({ messages }: ChatRequest): readonly string[] {
  return messages
    .filter(({ role }) => role !== "system")
    .flatMap(({ content, toolCalls = [] }) => [content, ...toolCalls.map((call) => call.arguments)]);
}
