import { describe, expect, it } from "vitest";
import { stream } from "../../../src/random.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import { proposeCorrection } from "../../../synth/analyzer/analyzer.ts";
import { identityFault, recordRun, rerun, seededModel } from "../../../synth/replay.ts";
import { mutatePython } from "../../../synth/simulator/players/mutations.ts";
import { simulatedModelFor } from "../../../synth/simulator/players/registry.ts";
import { simulatorConfigSchema } from "../../../synth/simulator/simulator.ts";
import { stepsInError, trueDecisiveStep } from "../../../synth/simulator/truth.ts";
import { systemById } from "../../../synth/systems/registry.ts";
import { stepsFromCalls } from "../../../synth/tape/tape.ts";
import { taskSetById } from "../../../synth/tasks/registry.ts";

const SEED = 5;
const FLAWLESS = simulatorConfigSchema.parse({ hardRate: 0, noise: 0 });

const TEAMS = [
  { set: "blackjack", system: "blackjack-table", limit: 40 },
  { set: "hotpotqa", system: "searcher", limit: 40 },
  { set: "mbppplus", system: "coder-tester", limit: 24 },
  { set: "math-chains", system: "planner-solver-verifier", limit: 40 },
] as const;

interface PlayedTeam {
  readonly set: string;
  readonly system: string;
  readonly limit: number;
}

async function open({ set, system: name, limit }: PlayedTeam) {
  const [system, taskSet] = [systemById(name), taskSetById(set)];
  const tasks = await taskSet.load({ seed: SEED, limit });
  const play = await simulatedModelFor(name, tasks);
  return { tasks, play, settingOf: (task: Task) => ({ system, taskSet, task }) };
}

describe.each(TEAMS)("the player of $system on $set", (team) => {
  it("succeeds at every task when it makes no mistake", async () => {
    const { tasks, play, settingOf } = await open(team);
    const failed: unknown[] = [];
    for (const task of tasks) {
      const { outcome } = await recordRun(settingOf(task), play(FLAWLESS));
      if (!outcome.success) failed.push([task.id, outcome]);
    }
    expect(failed).toEqual([]);
  }, 120_000);

  it(`fails by its mistakes, at a true decisive step that is one of them, repaired by the correction (seed ${SEED})`, async () => {
    const { tasks, play, settingOf } = await open(team);
    const config = simulatorConfigSchema.parse({ regime: "systematic", noise: 0.05, seed: SEED });
    const steps = new Set<number>();
    let failed = 0;
    for (const task of tasks) {
      const setting = settingOf(task);
      const run = [SEED, "record", task.id] as const;
      const recording = await recordRun(setting, seededModel(play(config), ...run));
      expect(await identityFault(setting, recording)).toBeUndefined();
      if (recording.outcome.success) continue;
      failed++;
      const truth = await trueDecisiveStep(setting, recording, play);
      expect(await stepsInError(recording, config, play, run)).toContain(truth?.step);
      if (truth === undefined) continue;
      steps.add(truth.step);
      const analyzer = { model: play(config), attempts: 1 };
      const recorded = stepsFromCalls(recording.tape.calls);
      const { action } = await proposeCorrection(task, recorded, truth.step, analyzer);
      if (action === undefined) continue; // the leak guard took the correction for an answer
      expect(action).not.toBe(recorded[truth.step]?.content);
      const treated = await rerun(setting, recording.tape, { at: truth.step, action }, play(FLAWLESS));
      expect([task.id, truth.step, action, treated.outcome.success]).toEqual([task.id, truth.step, action, true]);
    }
    expect(failed).toBeGreaterThan(tasks.length / 4);
    expect(steps.size).toBeGreaterThan(2);
  }, 300_000);

  it("answers by request and seed alone", async () => {
    const { tasks, play, settingOf } = await open({ ...team, limit: 4 });
    const config = simulatorConfigSchema.parse({ noise: 0.9, seed: 2 });
    for (const task of tasks) {
      const said = async (name: string) =>
        (await recordRun(settingOf(task), seededModel(play(config), SEED, name))).tape.calls.map(
          ({ response }) => response,
        );
      expect(await said("a")).toEqual(await said("a"));
    }
  }, 60_000);
});

describe("the players", () => {
  it("refuse prompts that are not rootstep's own", async () => {
    const { play } = await open(TEAMS[0]);
    const hello = { messages: [{ role: "user" as const, content: "hello" }] };
    await expect(play(FLAWLESS).complete(hello)).rejects.toMatchObject({ code: "SIMULATOR_CONFUSED" });
  });

  it("of code says which tasks it plays", async () => {
    const system = systemById("coder-tester");
    const [task] = await taskSetById("gsm8k").load({ seed: 1, limit: 1 });
    const play = await simulatedModelFor(system.id, [task as Task]);
    await expect(system.run(task as Task, play(FLAWLESS))).rejects.toMatchObject({
      code: "SIMULATOR_CONFUSED",
      what: expect.stringContaining("MBPP+ only"),
    });
  });

  it("slip at one place of the code, in no loop head", () => {
    const code =
      "def f(n):\n    total = 0\n    while n > 0:\n        total += n % 3\n        n -= 1\n    return total + 1";
    for (let draw = 0; draw < 100; draw++) {
      const changed = mutatePython(code, stream(1, "mutate", draw)) ?? "";
      const differing = changed.split("\n").filter((line, at) => line !== code.split("\n")[at]);
      expect(differing).toHaveLength(1);
      expect(differing[0]).not.toMatch(/while|-=|\+=|def/u);
    }
    expect(mutatePython("def f(x):\n    return x", stream(1, "none"))).toBeUndefined();
  });
});
