import { sessionOf } from "../../tasks/blackjack/blackjack.ts";
import { nameOf } from "../../tasks/blackjack/cards.ts";
import { ACTIONS, type Action, legalActions } from "../../tasks/blackjack/expected-value.ts";
import { createTable, recordOf, type Table } from "../../tasks/blackjack/table.ts";
import type { AgentSystem } from "../system.ts";
import { createTeam, instructionsOf } from "../team.ts";

const AGENTS = ["counter", "adviser", "player"] as const;
const instructions = instructionsOf("blackjack", AGENTS);

/** The counter states the hand, the adviser says what to do, the player does it; the table deals from the task's shoe. */
export const blackjackTable: AgentSystem = {
  id: "blackjack-table",
  title: "counter, adviser and player at a blackjack table",
  agents: AGENTS,
  sideEffects: "none",
  stepPolicy: "per-call",
  async run(task, model, signal) {
    const { shoe, hands } = sessionOf(task);
    const table = createTable(shoe, hands);
    const team = createTeam(instructions, task, model, signal);
    for (let open = table.open; open !== undefined; open = table.open) {
      team.observe("table", shown(open));
      await team.turn("counter", "State the hand.");
      await team.turn("adviser", "Advise the player.");
      const said = await team.turn("player", "Act.");
      table.play(actionIn(said, open.mayDouble));
    }
    return { answer: recordOf(table.decisions) };
  },
};

function shown({ handNumber, cards, dealer, mayDouble }: NonNullable<Table["open"]>): string {
  const actions = legalActions({ mayDouble }).join(", ");
  return `hand ${handNumber}, your cards ${cards.map(nameOf).join(" ")}, the dealer shows ${nameOf(dealer)}, you may ${actions}`;
}

/** The action a line names last. The house takes a double that is not allowed for a hit, and anything else for a stand. */
function actionIn(line: string, mayDouble: boolean): Action {
  const named = line
    .toLowerCase()
    .match(new RegExp(`\\b(?:${ACTIONS.join("|")})\\b`, "gu"))
    ?.at(-1);
  const action = ACTIONS.find((known) => known === named) ?? "stand";
  return action === "double" && !mayDouble ? "hit" : action;
}
