import type { Dialect } from "./dialect.ts";
import { isWorkedOut, lengthWithOneCheck, linesIn, problemIn, roleIn, shownTo } from "./team-lines.ts";

/** A role of a shipped team that answers in plain text: its instructions in the system prompt, the team's work in the messages. */
export const team: Dialect = {
  id: "team",
  read(request) {
    const agent = roleIn(request.messages.find(({ role }) => role === "system")?.content ?? "");
    const shown = shownTo(request);
    const problem = problemIn(shown);
    if (agent === undefined || problem === undefined) return undefined;
    const log = linesIn(shown);
    return {
      kind: "turn",
      agent,
      problem,
      log,
      final: isWorkedOut(log),
      length: lengthWithOneCheck,
      dress: (content) => ({ content }),
    };
  },
};
