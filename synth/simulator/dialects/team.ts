import type { Dialect } from "./dialect.ts";
import { linesIn, plainTurn, problemIn, roleIn, shownTo } from "./team-lines.ts";

/** A role of a shipped team that answers in plain text: its instructions in the system prompt, the team's work in the messages. */
export const team: Dialect = {
  id: "team",
  read(request) {
    const agent = roleIn(request.messages.find(({ role }) => role === "system")?.content ?? "");
    const shown = shownTo(request);
    const problem = problemIn(shown);
    if (agent === undefined || problem === undefined) return undefined;
    return plainTurn(agent, problem, linesIn(shown));
  },
};
