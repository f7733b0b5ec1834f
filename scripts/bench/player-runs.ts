import { identityFault, recordRun, type Setting, seededModel } from "../../synth/replay.ts";
import { createReplayExperiment } from "../../synth/search/replay-experiment.ts";
import { simulatedModelFor } from "../../synth/simulator/players/registry.ts";
import { simulatorConfigSchema } from "../../synth/simulator/simulator.ts";
import { trueDecisiveStep } from "../../synth/simulator/truth.ts";
import { systemById } from "../../synth/systems/registry.ts";
import { taskSetById } from "../../synth/tasks/registry.ts";
import type { Cell, FailedRun } from "./failed-run.ts";

/** Task sets with the system that works on them. */
export const PLAYED = {
  blackjack: "blackjack-table",
  hotpotqa: "searcher",
  "math-chains": "planner-solver-verifier",
  mbppplus: "coder-tester",
} as const;

const ANALYZER_ATTEMPTS = 3;
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
  for (let pass = 0; ; pass++) {
    const model = open(simulatorConfigSchema.parse({ regime, noise, seed: seed * 1000 + pass }));
    for (const task of tasks) {
      const setting: Setting = { system, taskSet, task };
      const id = `${task.id}-${pass}`;
      const recording = await recordRun(setting, seededModel(model, seed, "record", id));
      if (recording.outcome.success || (await identityFault(setting, recording)) !== undefined) continue;
      const truth = await trueDecisiveStep(setting, recording, open);
      if (truth === undefined) continue;
      const options = { id, setting, recording, model, analyzer: model, analyzerAttempts: ANALYZER_ATTEMPTS, seed };
      yield {
        id,
        truth: truth.step,
        length: recording.tape.calls.length,
        open: () => createReplayExperiment(options),
      };
    }
  }
}
