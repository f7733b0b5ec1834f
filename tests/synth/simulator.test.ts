import { describe, expect, it } from "vitest";
import { openAICompatible } from "../../src/models/openai-compatible.ts";
import { stream } from "../../src/random.ts";
import { type Recording, recordRun, type Setting, seededModel } from "../../synth/replay.ts";
import { cleanLog, rightUtterance, write } from "../../synth/simulator/continuation.ts";
import { knowledgeOf } from "../../synth/simulator/knowledge.ts";
import { lengthOf } from "../../synth/simulator/layout.ts";
import { readLog } from "../../synth/simulator/log-state.ts";
import { makeMistake } from "../../synth/simulator/mistakes.ts";
import { byCalculations } from "../../synth/simulator/players/simulated-model.ts";
import { serveSimulator } from "../../synth/simulator/server.ts";
import { simulatorConfigSchema } from "../../synth/simulator/simulator.ts";
import { stepsInError, trueDecisiveStep } from "../../synth/simulator/truth.ts";
import { calculationsOf } from "../../synth/tasks/calculations.ts";
import { bench, FLAWLESS } from "./setting.ts";

const contents = (recording: Recording): string[] => recording.tape.calls.map((call) => call.response.content);

describe("the fallible simulator", () => {
  it("solves every usable GSM8K problem when it makes no mistake", async () => {
    const { settings, model } = await bench("gsm8k", 2000);
    const wrong: string[] = [];
    for (const setting of settings) {
      const { outcome } = await recordRun(setting, model(FLAWLESS));
      if (!outcome.success) wrong.push(setting.task.id);
    }
    expect(wrong).toEqual([]);
  });

  it("says what a solution says: planner, solver, and the verifier after every second calculation", () => {
    const calculations = calculationsOf("<<16-3-4=9>>9 <<9*2=18>>18\n#### 18") ?? [];
    expect(cleanLog(calculations)).toEqual([
      { agent: "planner", content: "Plan 1: 16 - 3" },
      { agent: "solver", content: "16 - 3 = 13" },
      { agent: "planner", content: "Plan 2: previous - 4" },
      { agent: "solver", content: "13 - 4 = 9" },
      { agent: "verifier", content: "Checked: the current value is 9." },
      { agent: "planner", content: "Plan 3: previous * 2 (last)" },
      { agent: "solver", content: "9 * 2 = 18" },
      { agent: "verifier", content: "Checked: the final answer is 18." },
    ]);
    expect(lengthOf(calculations)).toBe(8);
  });

  it("computes from the log it is shown: a wrong value carries on", () => {
    const calculations = calculationsOf("<<16-3-4=9>>9 <<9*2=18>>18\n#### 18") ?? [];
    const wrong = [
      { agent: "planner", content: "Plan 1: 16 - 3" },
      { agent: "solver", content: "16 - 3 = 14" },
      { agent: "planner", content: "Plan 2: previous - 4" },
    ];
    const next = rightUtterance("solver", calculations, readLog(wrong), false);
    expect(next && write(next)).toBe("14 - 4 = 10");
  });

  it("gives the same run for the same seed and another for another", async () => {
    const { settings, model } = await bench("gsm8k", 5);
    const setting = settings[0] as Setting;
    const run = (name: string) => recordRun(setting, seededModel(model({ noise: 0.9 }), 1, name));
    expect(contents(await run("a"))).toEqual(contents(await run("a")));
    const others = await Promise.all(["b", "c", "d", "e"].map(run));
    expect(
      others.some((other) => JSON.stringify(contents(other)) !== JSON.stringify(contents(others[0] as Recording))),
    ).toBe(true);
  });

  it("errs at the rates of its regime", async () => {
    const { settings, model } = await bench("chain", 400);
    const failures = async (config: Parameters<typeof model>[0]): Promise<number> => {
      let failed = 0;
      for (const setting of settings) {
        const { outcome } = await recordRun(setting, seededModel(model(config), 3, setting.task.id));
        failed += Number(!outcome.success);
      }
      return failed / settings.length;
    };
    // Few mistakes are harmless, so the share of failed runs is a little below the share of runs with one.
    expect(await failures({ regime: "slip", noise: 0 })).toBeGreaterThan(0.22);
    expect(await failures({ regime: "slip", noise: 0 })).toBeLessThan(0.36);
    expect(await failures({ regime: "systematic", noise: 0 })).toBeGreaterThan(0.8);
    expect(await failures({ hardRate: 0, noise: 0.1 })).toBeLessThan(0.15);
  });

  it("makes mistakes of the same form as right lines", () => {
    const right = { kind: "solution", left: 13, operator: "-", right: 4, value: 9 } as const;
    for (let draw = 0; draw < 200; draw++) {
      const { wrong } = makeMistake(right, stream(1, "mistake", draw));
      expect(write(wrong)).toMatch(/^\d+ [-+*/] \d+ = -?\d+(\.\d+)?$/u);
      expect(write(wrong)).not.toBe(write(right));
    }
  });

  it("has a true decisive step that is one of the steps at which it erred", async () => {
    const { settings, model } = await bench("gsm8k", 300);
    const tasks = settings.map((setting) => setting.task);
    const config = simulatorConfigSchema.parse({ provider: "simulator" });
    let failed = 0;
    for (const setting of settings) {
      const run = [4, "record", setting.task.id] as const;
      const recording = await recordRun(setting, seededModel(model({}), ...run));
      if (recording.outcome.success) continue;
      failed++;
      const truth = await trueDecisiveStep(setting, recording, byCalculations(knowledgeOf(tasks)));
      expect(await stepsInError(recording, config, byCalculations(knowledgeOf(tasks)), run)).toContain(truth?.step);
    }
    expect(failed).toBeGreaterThan(50);
  });

  it("refuses prompts that are not rootstep's own", async () => {
    const { model } = await bench("gsm8k", 1);
    await expect(model({}).complete({ messages: [{ role: "user", content: "hello" }] })).rejects.toMatchObject({
      code: "SIMULATOR_CONFUSED",
    });
  });
});

describe("the simulator over HTTP", () => {
  it.each([true, false])("answers as it does in process (stream: %s)", async (useStream) => {
    const { settings, model } = await bench("gsm8k", 3);
    const server = await serveSimulator({ model: model({ noise: 0.5 }), port: 0, now: () => new Date(0) });
    try {
      const client = openAICompatible({ baseUrl: server.url, model: "simulator", stream: useStream });
      for (const setting of settings) {
        const over = await recordRun(setting, seededModel(client, 9, setting.task.id));
        const direct = await recordRun(setting, seededModel(model({ noise: 0.5 }), 9, setting.task.id));
        expect(contents(over)).toEqual(contents(direct));
      }
    } finally {
      await server.close();
    }
  });

  it("says so when its port is taken, and refuses what it does not understand", async () => {
    const { model } = await bench("gsm8k", 1);
    const server = await serveSimulator({ model: model({}), port: 0, now: () => new Date(0) });
    try {
      const port = Number(new URL(server.url).port);
      await expect(serveSimulator({ model: model({}), port, now: () => new Date(0) })).rejects.toMatchObject({
        code: "PORT_IN_USE",
      });
      const client = openAICompatible({ baseUrl: server.url, model: "simulator" });
      await expect(client.complete({ messages: [{ role: "user", content: "hello" }] })).rejects.toMatchObject({
        code: "MODEL_REFUSED_REQUEST",
      });
    } finally {
      await server.close();
    }
  });
});
