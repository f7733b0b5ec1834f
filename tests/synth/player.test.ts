import { describe, expect, it } from "vitest";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { identityFault, type Recording, recordRun, rerun, type Setting, seededModel } from "../../synth/replay.ts";
import type { AgentSystem } from "../../synth/systems/system.ts";
import { createPlayer } from "../../synth/tape/player.ts";
import { bench, FLAWLESS } from "./setting.ts";

/** Fails the test if anything is asked live. */
const neverLive: ChatModel = {
  id: "never",
  complete: () => Promise.reject(new Error("a live call was made")),
};

const said = (calls: Recording["tape"]["calls"]): string[] => calls.map((call) => call.response.content);

describe("the player", () => {
  it("passes the identity gate on every run: no live call, same outcome", async () => {
    const { settings, model } = await bench("gsm8k", 120);
    for (const setting of settings) {
      const recording = await recordRun(setting, seededModel(model({ noise: 0.4 }), 1, setting.task.id));
      expect(await identityFault(setting, recording)).toBeUndefined();
    }
  });

  it("replays up to the cut, puts the action there, and is live after it", async () => {
    const { settings, model } = await bench("gsm8k", 1);
    const setting = settings[0] as Setting;
    const recording = await recordRun(setting, model(FLAWLESS));
    const length = recording.tape.calls.length;
    for (let at = 0; at < length; at++) {
      const replayed = await rerun(setting, recording.tape, { at, action: "7 - 7 = 0" }, model(FLAWLESS));
      expect(said(replayed.calls).slice(0, at)).toEqual(said(recording.tape.calls).slice(0, at));
      expect(said(replayed.calls)[at]).toBe("7 - 7 = 0");
      expect(replayed.liveCalls).toBe(replayed.calls.length - at - 1);
    }
    const control = await rerun(setting, recording.tape, { at: length }, neverLive);
    expect(control.liveCalls).toBe(0);
    expect(control.outcome).toEqual(recording.outcome);
  });

  it("aborts with the first difference when the program asks something else, never live before the cut", async () => {
    const { settings, model } = await bench("gsm8k", 1);
    const setting = settings[0] as Setting;
    const recording = await recordRun(setting, model(FLAWLESS));
    const changed: Setting = { ...setting, task: { ...setting.task, text: `${setting.task.text} (edited)` } };
    await expect(rerun(changed, recording.tape, { at: 3 }, neverLive)).rejects.toMatchObject({
      code: "REPLAY_DIVERGED",
      what: expect.stringContaining("(edited)"),
    });
    expect(await identityFault(changed, recording)).toContain("the tape has call 0 of planner next");
  });

  it("tells of a program that asks for more or fewer calls than its tape holds", async () => {
    const { settings, model } = await bench("gsm8k", 1);
    const setting = settings[0] as Setting;
    const recording = await recordRun(setting, model(FLAWLESS));
    const doubled: AgentSystem = {
      ...setting.system,
      async run(task, chat) {
        await setting.system.run(task, chat);
        return setting.system.run(task, chat);
      },
    };
    expect(await identityFault({ ...setting, system: doubled }, recording)).toContain("the tape holds");
    const silent: AgentSystem = { ...setting.system, run: async () => ({ answer: "18" }) };
    expect(await identityFault({ ...setting, system: silent }, recording)).toContain("calls fewer than the tape holds");
  });

  it("keeps the order within a lane when lanes ask at the same time", async () => {
    const request = (content: string) => ({ messages: [{ role: "user" as const, content }] });
    const response = (content: string) => ({ content, toolCalls: [], finishReason: "stop" as const, model: "m" });
    const calls = [
      { index: 0, lane: "a", request: request("same"), response: response("a0") },
      { index: 1, lane: "b", request: request("same"), response: response("b0") },
      { index: 2, lane: "a", request: request("same"), response: response("a1") },
    ];
    const { model } = createPlayer({ tape: { version: 1, calls } });
    const answers = await Promise.all(
      ["b", "a", "a"].map((agent) => model.complete(request("same"), { agent }).then(({ content }) => content)),
    );
    expect(answers).toEqual(["b0", "a0", "a1"]);
  });
});
