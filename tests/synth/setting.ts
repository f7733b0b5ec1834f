import type { ChatModel } from "../../src/models/chat-model.ts";
import type { Setting } from "../../synth/replay.ts";
import { knowledgeOf } from "../../synth/simulator/knowledge.ts";
import { type SimulatorConfig, simulatedModel, simulatorConfigSchema } from "../../synth/simulator/simulator.ts";
import { plannerSolverVerifier } from "../../synth/systems/planner-solver-verifier/system.ts";
import { chain } from "../../synth/tasks/chain.ts";
import { gsm8k } from "../../synth/tasks/gsm8k.ts";
import type { TaskSet } from "../../synth/tasks/task-set.ts";

export interface Bench {
  readonly settings: readonly Setting[];
  model(config: Partial<SimulatorConfig>): ChatModel;
}

/** Real tasks with the simulator behind them. */
export async function bench(set: "gsm8k" | "chain", limit: number): Promise<Bench> {
  const taskSet: TaskSet = set === "gsm8k" ? gsm8k : chain;
  const tasks = await taskSet.load({ seed: 5, limit });
  const solve = knowledgeOf(tasks);
  return {
    settings: tasks.map((task) => ({ system: plannerSolverVerifier, taskSet, task })),
    model: (config) =>
      simulatedModel({ config: simulatorConfigSchema.parse({ provider: "simulator", ...config }), solve }),
  };
}

export const FLAWLESS = { hardRate: 0, noise: 0 } as const;
