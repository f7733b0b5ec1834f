import type { RandomStream } from "../../../src/random.ts";
import { sessionOf } from "../../tasks/blackjack/blackjack.ts";
import { CARDS, type Card, cardOf, handValue, nameOf } from "../../tasks/blackjack/cards.ts";
import {
  ACTIONS,
  type Action,
  bestAction,
  legalActions,
  type Situation,
} from "../../tasks/blackjack/expected-value.ts";
import { createTable, type Table } from "../../tasks/blackjack/table.ts";
import type { Player, Turn } from "./player.ts";
import type { LogEntry } from "./team-prompt.ts";

const AGENTS_PER_DECISION = 3;

/**
 * Plays counter, adviser and player at the blackjack table. The adviser goes by what the counter stated and the player by
 * what the adviser said, so a misread hand leads to a wrong action.
 */
export const blackjackPlayer: Player = {
  length: (task) => AGENTS_PER_DECISION * (task.referenceSolution?.match(/hit|stand|double/gu)?.length ?? 1),
  right({ agent, log, opening }) {
    if (agent === "counter") {
      const table = log.at(-1)?.observations.at(-1) ?? opening.at(-1) ?? "";
      return readTable(table) ?? "I cannot see the table.";
    }
    if (agent === "adviser") {
      const situation = situationIn(log.at(-1)?.content ?? "");
      return situation === undefined ? "I cannot tell." : `Advice: ${bestAction(situation)}`;
    }
    return `Action: ${actionIn(log.at(-1)?.content) ?? "stand"}`;
  },
  wrong({ agent, log }, right, random) {
    if (agent === "counter") return misread(right, random);
    const said = actionIn(right);
    const cards = situationIn(log.findLast((entry) => entry.agent === "counter")?.content ?? "");
    const others = legalActions({ mayDouble: cards?.mayDouble ?? false }).filter((action) => action !== said);
    return right.replace(/\w+$/u, random.pick(others));
  },
  correction(turn) {
    const open = tableAfter(turn).open;
    if (open === undefined) return turn.agent === "counter" ? "Hand: none" : "Action: stand";
    if (turn.agent === "counter") return stated(open.cards, open.dealer);
    return `${turn.agent === "adviser" ? "Advice" : "Action"}: ${bestAction(open)}`;
  },
};

const stated = (cards: readonly Card[], dealer: Card): string => {
  const { total, soft } = handValue(cards);
  return `Hand: ${soft ? "soft" : "hard"} ${total} of ${cards.length} cards against ${nameOf(dealer)}`;
};

/** The counter's line from what the table showed. */
function readTable(text: string): string | undefined {
  const [, list = "", up = ""] = /your cards ([\dA ]+), the dealer shows (\w+)/u.exec(text) ?? [];
  const cards = list.split(" ").map(cardOf);
  const dealer = cardOf(up);
  const known = cards.filter((card) => card !== undefined);
  return dealer === undefined || known.length !== cards.length ? undefined : stated(known, dealer);
}

function situationIn(line: string): Situation | undefined {
  const [, kind, total, count, up = ""] = /(hard|soft) (\d+) of (\d+) cards against (\w+)/u.exec(line) ?? [];
  const dealer = cardOf(up);
  if (kind === undefined || dealer === undefined) return undefined;
  return { hand: { total: Number(total), soft: kind === "soft" }, dealer, mayDouble: Number(count) === 2 };
}

function actionIn(line: string | undefined): Action | undefined {
  return ACTIONS.find((action) => line?.endsWith(action) === true);
}

/** Another total, or another card of the dealer. */
function misread(line: string, random: RandomStream): string | undefined {
  const situation = situationIn(line);
  if (situation === undefined) return undefined;
  if (random.chance(0.3)) {
    const other = random.pick(CARDS.filter((card) => card !== situation.dealer));
    return line.replace(/\w+$/u, nameOf(other));
  }
  const { total } = situation.hand;
  const totals = [-4, -3, -2, 2, 3, 4].map((step) => total + step).filter((sum) => sum >= 5 && sum <= 20);
  return line.replace(/\d+/u, String(random.pick(totals)));
}

/** The table as it stands after the log's actions: the analyzer knows the shoe. */
function tableAfter({ task, log }: { readonly task: Turn["task"]; readonly log: readonly LogEntry[] }): Table {
  const { shoe, hands } = sessionOf(task);
  const table = createTable(shoe, hands);
  for (const { agent, content } of log) {
    if (agent !== "player" || table.open === undefined) continue;
    const action = actionIn(content) ?? "stand";
    table.play(action === "double" && !table.open.mayDouble ? "hit" : action);
  }
  return table;
}
