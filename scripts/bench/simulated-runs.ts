import { knowledgeOf } from "../../synth/simulator/knowledge.ts";
import { lengthOf } from "../../synth/simulator/layout.ts";
import { byCalculations } from "../../synth/simulator/players/simulated-model.ts";
import { plannerSolverVerifier } from "../../synth/systems/planner-solver-verifier/system.ts";
import { gsm8k } from "../../synth/tasks/gsm8k.ts";
import type { Cell, FailedRun } from "./failed-run.ts";
import { failedRuns } from "./failed-runs.ts";

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
  yield* failedRuns(
    { system: plannerSolverVerifier, taskSet: gsm8k, tasks, open: byCalculations(solve) },
    { regime, noise },
    seed,
  );
}
