import { simulatedModelFor } from "../../synth/simulator/players/registry.ts";
import { systemById } from "../../synth/systems/registry.ts";
import { taskSetById } from "../../synth/tasks/registry.ts";
import type { Cell, FailedRun } from "./failed-run.ts";
import { failedRuns } from "./failed-runs.ts";

/** Task sets with the system that works on them. */
export const PLAYED = {
  blackjack: "blackjack-table",
  hotpotqa: "searcher",
  "math-chains": "planner-solver-verifier",
  mbppplus: "coder-tester",
} as const;

const TASKS = 100;

/** Failed runs of one task set, played fallibly, with the truth; pass after pass with other hard steps. Their length is the task's. */
export async function* playerRuns(
  set: keyof typeof PLAYED,
  { regime, noise }: Omit<Cell, "length">,
  seed: number,
): AsyncGenerator<FailedRun> {
  const [system, taskSet] = [systemById(PLAYED[set]), taskSetById(set)];
  const tasks = await taskSet.load({ seed, limit: TASKS });
  const open = await simulatedModelFor(system.id, tasks);
  yield* failedRuns({ system, taskSet, tasks, open }, { regime, noise }, seed);
}
