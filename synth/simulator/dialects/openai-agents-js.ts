import type { Dialect } from "./dialect.ts";
import { isWorkedOut, linesIn, plainTurn, problemIn, roleIn, shownTo } from "./team-lines.ts";

/** The Agents SDK's own words (its recommended prompt prefix) and a tool per agent that can be handed to. */
export const openaiAgentsJs: Dialect = {
  id: "openai-agents-js",
  read(request) {
    const system = request.messages.find(({ role }) => role === "system")?.content ?? "";
    if (!system.includes("a multi-agent system called the Agents SDK")) return undefined;
    const offered = new Set(request.tools?.map(({ name }) => name));
    const agent = roleIn(system);
    const shown = shownTo(request);
    const problem = problemIn(shown);
    if (agent === undefined || problem === undefined) return undefined;
    const log = linesIn(shown);
    const handTo = (line: string): string => {
      if (agent === "planner") return "transfer_to_solver";
      return isWorkedOut([...log, { agent, content: line }]) ? "transfer_to_verifier" : "transfer_to_planner";
    };
    return {
      ...plainTurn(agent, problem, log),
      dress(content) {
        const tool = handTo(content);
        return offered.has(tool) ? { content, toolCalls: [{ name: tool, arguments: {} }] } : { content };
      },
    };
  },
};
