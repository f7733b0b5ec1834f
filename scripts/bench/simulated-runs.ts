import { identityFault, recordRun, type Setting, seededModel } from "../../synth/replay.ts";
import { createReplayExperiment } from "../../synth/search/replay-experiment.ts";
import { knowledgeOf } from "../../synth/simulator/knowledge.ts";
import { lengthOf } from "../../synth/simulator/layout.ts";
import { byCalculations } from "../../synth/simulator/players/simulated-model.ts";
import { simulatedModel, simulatorConfigSchema } from "../../synth/simulator/simulator.ts";
import { trueDecisiveStep } from "../../synth/simulator/truth.ts";
import { plannerSolverVerifier } from "../../synth/systems/planner-solver-verifier/system.ts";
import { gsm8k } from "../../synth/tasks/gsm8k.ts";
import type { Cell, FailedRun } from "./failed-run.ts";

/** Corrections asked for per step, as `synth run` does by default. */
const ANALYZER_ATTEMPTS = 3;

/**
 * Failed runs of planner, solver and verifier on GSM8K problems, played by the simulator, with its own truth. Problems
 * whose clean run has the cell's length (for long ones, near it); pass after pass with another seed of the simulator,
 * which moves the hard steps.
 */
export async function* simulatedRuns({ regime, noise, length }: Cell, seed: number): AsyncGenerator<FailedRun> {
  const all = await gsm8k.load({ seed, limit: Infinity });
  const solve = knowledgeOf(all);
  const tasks = all.filter((task) => {
    const calculations = solve(task.text);
    const tolerance = length < 15 ? 0 : 3;
    return calculations !== undefined && Math.abs(lengthOf(calculations) - length) <= tolerance;
  });
  for (let pass = 0; tasks.length > 0; pass++) {
    const config = simulatorConfigSchema.parse({ regime, noise, seed: seed * 1000 + pass });
    const model = simulatedModel({ config, solve });
    for (const task of tasks) {
      const setting: Setting = { system: plannerSolverVerifier, taskSet: gsm8k, task };
      const id = `${task.id}-${pass}`;
      const recording = await recordRun(setting, seededModel(model, seed, "record", id));
      if (recording.outcome.success || (await identityFault(setting, recording)) !== undefined) continue;
      const truth = await trueDecisiveStep(setting, recording, byCalculations(solve));
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
