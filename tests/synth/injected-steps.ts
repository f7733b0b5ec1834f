import type { Task } from "../../src/trajectory/schema.ts";
import { injectFault } from "../../synth/inject/inject.ts";
import { injectionOperatorById } from "../../synth/inject/registry.ts";
import { recordRun, type Setting, seededModel } from "../../synth/replay.ts";
import type { SearchSettings } from "../../synth/search/strategy.ts";
import { simulatedModelFor } from "../../synth/simulator/players/registry.ts";
import { simulatorConfigSchema } from "../../synth/simulator/simulator.ts";
import { trueDecisiveStep } from "../../synth/simulator/truth.ts";
import { systemById } from "../../synth/systems/registry.ts";
import { taskSetById } from "../../synth/tasks/registry.ts";
import type { SeenStep } from "./provenance.ts";

const SETTINGS: SearchSettings = { alpha: 0.05, maxBlocks: 100, minEffect: 0.2, futility: 0.05 };

export interface Team {
  readonly system: string;
  readonly set: string;
  readonly tasks: number;
}

interface Opened {
  readonly tasks: readonly Task[];
  readonly open: Awaited<ReturnType<typeof simulatedModelFor>>;
  settingOf(task: Task): Setting;
}

async function opened({ system, set, tasks: limit }: Team, seed: number): Promise<Opened> {
  const taskSet = taskSetById(set);
  const tasks = await taskSet.load({ seed, limit });
  const open = await simulatedModelFor(system, tasks);
  return { tasks, open, settingOf: (task) => ({ system: systemById(system), taskSet, task }) };
}

/** Decisive steps of runs that the simulator failed by itself, pass after pass with other hard steps. */
export async function naturalSteps(team: Team, wanted: number, seed: number): Promise<SeenStep[]> {
  const { tasks, open, settingOf } = await opened(team, seed);
  const found: SeenStep[] = [];
  for (let pass = 0; found.length < wanted && pass < 20; pass++) {
    const model = open(simulatorConfigSchema.parse({ regime: "systematic", noise: 0.05, seed: seed * 100 + pass }));
    for (const task of tasks) {
      if (found.length >= wanted) break;
      const recording = await recordRun(settingOf(task), seededModel(model, seed, "natural", task.id, pass));
      if (recording.outcome.success) continue;
      const truth = await trueDecisiveStep(settingOf(task), recording, open);
      const { calls } = recording.tape;
      const call = truth === undefined ? undefined : calls[truth.step];
      if (call === undefined) continue;
      const { content } = call.response;
      found.push({ task: task.id, content, agent: call.lane, step: call.index, length: calls.length });
    }
  }
  return found;
}

/** Labelled steps of injected runs, through the whole injection with fewer admission reruns than by default. */
export async function injectedSteps(team: Team, operator: string, wanted: number, seed: number): Promise<SeenStep[]> {
  const { tasks, open, settingOf } = await opened(team, seed);
  const found: SeenStep[] = [];
  const model = open(simulatorConfigSchema.parse({ hardRate: 0, noise: 0, seed }));
  for (let pass = 0; found.length < wanted && pass < 20; pass++) {
    for (const task of tasks) {
      if (found.length >= wanted) break;
      const setting = settingOf(task);
      const id = `${task.id}-${pass}`;
      const recording = await recordRun(setting, seededModel(model, seed, "injected", id));
      if (!recording.outcome.success) continue;
      const { failed } = await injectFault({
        id,
        setting,
        recording,
        model,
        operator: injectionOperatorById(operator),
        settings: { points: 3, minControlSuccess: 0.2, maxAdmissionReruns: 3 },
        test: SETTINGS,
        seed,
      });
      const call = failed?.run.calls[failed.step];
      if (failed === undefined || call === undefined) continue;
      const { content } = call.response;
      found.push({ task: task.id, content, agent: failed.agent, step: failed.step, length: failed.run.calls.length });
    }
  }
  return found;
}
