import { describe, expect, it } from "vitest";
import type { Step } from "../../../src/trajectory/schema.ts";
import { proposePlacebo } from "../../../synth/analyzer/control-arms.ts";
import { recordRun, rerun } from "../../../synth/replay.ts";
import { simulatedModelFor } from "../../../synth/simulator/players/registry.ts";
import { simulatorConfigSchema } from "../../../synth/simulator/simulator.ts";
import { systemById } from "../../../synth/systems/registry.ts";
import { stepsFromCalls } from "../../../synth/tape/tape.ts";
import { taskSetById } from "../../../synth/tasks/registry.ts";

const FLAWLESS = simulatorConfigSchema.parse({ hardRate: 0, noise: 0 });

describe("the simulator asked for a placebo", () => {
  it.each([
    ["planner-solver-verifier", "gsm8k"],
    ["searcher", "hotpotqa"],
    ["blackjack-table", "blackjack"],
    ["coder-tester", "mbppplus"],
  ])(
    "rephrases every step of %s so that the flawless team still succeeds after it",
    async (name, set) => {
      const [system, taskSet] = [systemById(name), taskSetById(set)];
      const tasks = await taskSet.load({ seed: 3, limit: name === "coder-tester" ? 2 : 5 });
      const model = (await simulatedModelFor(name, tasks))(FLAWLESS);
      let rephrased = 0;
      for (const task of tasks) {
        const setting = { system, taskSet, task };
        const { tape } = await recordRun(setting, model);
        for (const step of stepsFromCalls(tape.calls)) {
          const { action, attempts, rejected } = await proposePlacebo(task, step, { model, attempts: 3 });
          expect([attempts, rejected]).toEqual([1, []]);
          if (action === undefined) throw new Error("no placebo");
          expect(action).not.toBe(step.content);
          const { outcome } = await rerun(setting, tape, { at: step.index, action }, model);
          expect([task.id, step.index, action, outcome.success]).toEqual([task.id, step.index, action, true]);
          rephrased++;
        }
      }
      expect(rephrased).toBeGreaterThan(9);
    },
    120_000,
  );

  it("leaves JSON what it is, keeps what is refused apart from the step, and declines where nothing is said", async () => {
    const [task] = await taskSetById("gsm8k").load({ seed: 3, limit: 1 });
    if (task === undefined) throw new Error("no task");
    const model = (await simulatedModelFor("planner-solver-verifier", [task]))(FLAWLESS);
    const step = (content: string): Step => {
      return { index: 0, agent: "planner", kind: "message", content, toolCalls: [], retrieved: [], callIds: [] };
    };
    const of = async (content: string) => proposePlacebo(task, step(content), { model, attempts: 2 });
    expect(JSON.parse((await of('{"plan": "3 + 4"}')).action ?? "")).toEqual({ plan: "3 + 4" });
    expect(await of("")).toEqual({ attempts: 2, rejected: ["nothing is said", "nothing is said"] });
    const asked = await model.complete({
      messages: [
        { role: "system", content: "You rephrase one step of a run." },
        {
          role: "user",
          content:
            "Problem: p\n\nStep to rephrase\nAgent: solver\nAction: 3 + 4 = 7\n\nwhich is odd.\n\nYour last rephrasing was refused: it is the same text.",
        },
      ],
    });
    expect(JSON.parse(asked.content)).toMatchObject({ action: "In other words, 3 + 4 = 7\n\nwhich is odd." });
  });
});
