import type { Task } from "../../src/trajectory/schema.ts";
import { identityFault, recordRun, type Setting, seededModel } from "../../synth/replay.ts";
import { createReplayExperiment } from "../../synth/search/replay-experiment.ts";
import type { SimulatedModel } from "../../synth/simulator/players/simulated-model.ts";
import { simulatorConfigSchema } from "../../synth/simulator/simulator.ts";
import { trueDecisiveStep } from "../../synth/simulator/truth.ts";
import type { Cell, FailedRun } from "./failed-run.ts";

/** Corrections asked for per step, as `synth run` does by default. */
const ANALYZER_ATTEMPTS = 3;

/**
 * Runs of the tasks that fail, replay and have a true decisive step, pass after pass: each has another seed of the player,
 * which moves the hard steps. None without tasks.
 */
export async function* failedRuns(
  played: Pick<Setting, "system" | "taskSet"> & { readonly tasks: readonly Task[]; readonly open: SimulatedModel },
  { regime, noise }: Pick<Cell, "regime" | "noise">,
  seed: number,
): AsyncGenerator<FailedRun> {
  const { system, taskSet, tasks, open } = played;
  for (let pass = 0; tasks.length > 0; pass++) {
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
