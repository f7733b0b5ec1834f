import type { Task } from "../../../src/trajectory/schema.ts";
import { mbppProblems } from "../../tasks/mbppplus/problems.ts";
import { knowledgeOf } from "../knowledge.ts";
import { blackjackPlayer } from "./blackjack.ts";
import { coderTesterPlayer } from "./coder-tester.ts";
import { fallibleModel } from "./fallible.ts";
import type { Player } from "./player.ts";
import { searcherPlayer } from "./searcher.ts";
import { byCalculations, type SimulatedModel } from "./simulated-model.ts";

/** Systems that have a player of their own; all others are played calculation by calculation. */
const PLAYERS: ReadonlyMap<string, () => Promise<Player>> = new Map([
  ["coder-tester", async () => coderTesterPlayer(await mbppProblems())],
  ["searcher", async () => searcherPlayer],
  ["blackjack-table", async () => blackjackPlayer],
]);

/** Who plays a system's agents on these tasks. */
export async function simulatedModelFor(system: string, tasks: readonly Task[]): Promise<SimulatedModel> {
  const player = await PLAYERS.get(system)?.();
  if (player === undefined) return byCalculations(knowledgeOf(tasks));
  return (config, onTurn) => fallibleModel({ config, player, tasks, ...(onTurn === undefined ? {} : { onTurn }) });
}
