import type { Dialect } from "./dialect.ts";
import { linesIn, plainTurn, problemIn, roleIn, shownTo } from "./team-lines.ts";

/**
 * AFlow's operators ask with one user message and no system prompt: the instruction, then the input (`Custom`), or
 * solutions by letter and a reply in XML (`ScEnsemble`). Of FoundationAgents/AFlow, scripts/operators.py.
 */
export const aflow: Dialect = {
  id: "aflow",
  read(request) {
    const [message, ...others] = request.messages;
    if (message?.role !== "user" || others.length > 0) return undefined;
    const shown = shownTo(request);
    if (message.content.includes("<solution_letter>")) return vote(message.content);
    const agent = message.content.startsWith("You are the ") ? roleIn(message.content) : undefined;
    const problem = problemIn(shown);
    if (agent === undefined || problem === undefined) return undefined;
    return plainTurn(agent, problem, linesIn([message.content.slice(message.content.indexOf("Problem: "))]));
  },
};

/** The letter of the solution given most often, the first of equals. */
function vote(prompt: string): ReturnType<Dialect["read"]> {
  const solutions = [...prompt.matchAll(/^([A-Z]): \n(.*)$/gmu)];
  if (solutions.length === 0) return undefined;
  const votes = (text: string | undefined): number => solutions.filter(([, , other]) => other === text).length;
  const most = Math.max(...solutions.map(([, , text]) => votes(text)));
  const letter = solutions.find(([, , text]) => votes(text) === most)?.[1];
  const content = `<thought>It is given by ${most} of ${solutions.length}.</thought>\n<solution_letter>${letter}</solution_letter>`;
  return { kind: "direct", reply: { content } };
}
