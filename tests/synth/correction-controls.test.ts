import { describe, expect, it } from "vitest";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { recordRun, seededModel } from "../../synth/replay.ts";
import { correctionControls } from "../../synth/search/correction-controls.ts";
import { createReplayExperiment } from "../../synth/search/replay-experiment.ts";
import { bench } from "./setting.ts";

/** The simulator as analyzer, and a rephraser that it does not know; counts what is asked. */
function withPlacebo(analyzer: ChatModel, rephrase: (action: string) => string): ChatModel {
  return {
    id: "with placebo",
    complete: (request, options) => {
      if (options?.agent !== "placebo") return analyzer.complete(request, options);
      const action = /\nAction: (.*)$/mu.exec(request.messages[1]?.content ?? "")?.[1] ?? "";
      const content = JSON.stringify({ action: rephrase(action), reason: "other words" });
      return Promise.resolve({ content, toolCalls: [], finishReason: "stop", model: "rephraser" });
    },
  };
}

async function failedRun() {
  const { settings, model } = await bench("chain", 30);
  const fallible = model({ regime: "systematic", noise: 0 });
  for (const setting of settings) {
    const recording = await recordRun(setting, seededModel(fallible, 7, "record", setting.task.id));
    if (!recording.outcome.success) return { setting, recording, fallible };
  }
  throw new Error("no run failed");
}

describe("the arms that control a correction", () => {
  it("rerun the step rephrased and with the answer given away; a placebo with other numbers is no arm", async () => {
    const { setting, recording, fallible } = await failedRun();
    const options = { id: "x", setting, recording, model: fallible, analyzerAttempts: 2, seed: 3 };
    const right = createReplayExperiment({ ...options, analyzer: withPlacebo(fallible, (said) => `So: ${said}`) });
    const last = recording.tape.calls.length - 1;
    const { placebo, hint, step } = await correctionControls(right, last, 5);
    // The last step states the answer: rephrased it is as wrong; with the hint the team's answer is the one given away.
    expect([step, placebo, hint]).toEqual([last, { runs: 5, successes: 0 }, { runs: 5, successes: 5 }]);
    const wrong = createReplayExperiment({ ...options, analyzer: withPlacebo(fallible, (said) => `${said} 77`) });
    expect((await correctionControls(wrong, last, 5)).placebo).toBeUndefined();
    expect(wrong.liveCalls).toBe(2);
    await expect(wrong.rerun("placebo", last, 0)).rejects.toThrow(/no action for arm placebo/u);
  });

  it("an experiment tells what became of the analyzer's proposals", async () => {
    const { setting, recording, fallible } = await failedRun();
    const silent: ChatModel = {
      id: "silent",
      complete: () => Promise.resolve({ content: "hm", toolCalls: [], finishReason: "stop", model: "silent" }),
    };
    const options = { id: "x", setting, recording, model: fallible, analyzerAttempts: 2, seed: 3 };
    const experiment = createReplayExperiment({ ...options, analyzer: silent });
    expect(await experiment.hasCorrection(0)).toBe(false);
    expect(experiment.analyzerTally()).toEqual({
      usable: 0,
      nonsense: 2,
      refused: 0,
      leaked: 0,
      rewritten: 0,
      steps: 1,
      corrected: 0,
    });
    expect(experiment.liveCalls).toBe(2);
    const able = createReplayExperiment({ ...options, analyzer: fallible });
    expect(await able.hasCorrection(0)).toBe(true);
    expect(able.analyzerTally()).toMatchObject({ usable: 1, nonsense: 0, steps: 1, corrected: 1 });
    expect(able.corrections()[0]).toMatchObject({ step: 0, attempts: 1, counts: { usable: 1 } });
  });
});
