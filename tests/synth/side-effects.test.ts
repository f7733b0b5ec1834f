import { describe, expect, it } from "vitest";
import { RootstepError } from "../../src/errors.ts";
import { synthConfigSchema } from "../../synth/pipeline/config.ts";
import { openUnitContext } from "../../synth/pipeline/unit-context.ts";
import { SIDE_EFFECTS } from "../../synth/tape/folder-schema.ts";
import { createSharedPrefix } from "../../synth/tape/prefix.ts";
import { createReplay } from "../../synth/tape/replay.ts";
import { refuseExternal } from "../../synth/tools/side-effects.ts";

describe("declared side effects", () => {
  const settings = [true, false].flatMap((isLive) =>
    [true, false].flatMap((hasTapedTools) =>
      [true, false].map((allowExternal) => ({ isLive, hasTapedTools, allowExternal })),
    ),
  );

  it("but external ones never stand in the way of a rerun", () => {
    for (const sideEffects of [...SIDE_EFFECTS.filter((kind) => kind !== "external"), undefined]) {
      for (const setting of settings) expect(() => refuseExternal({ sideEffects, ...setting })).not.toThrow();
    }
  });

  it("that are external refuse it: always where calls are live, else where no tool is on tape", () => {
    const refused = settings.filter((setting) => {
      try {
        refuseExternal({ sideEffects: "external", ...setting });
        return false;
      } catch (error) {
        expect(error).toMatchObject({ code: "SIDE_EFFECTS" });
        return true;
      }
    });
    expect(refused).toEqual([
      { isLive: true, hasTapedTools: true, allowExternal: false },
      { isLive: true, hasTapedTools: false, allowExternal: false },
      { isLive: false, hasTapedTools: false, allowExternal: false },
    ]);
  });

  it("of a shipped system do not stop synthesis", async () => {
    const config = synthConfigSchema.parse({ tasks: { limit: 1 } });
    expect(config.allowExternal).toBe(false);
    const openModel = () => {
      throw new Error("no model is needed");
    };
    await expect(openUnitContext(config, { openModel })).resolves.toMatchObject({ system: { sideEffects: "none" } });
  });
});

describe("a prefix that is a set of calls", () => {
  const recordings = ["slow", "quick", "end"].map((lane, index) => ({
    index,
    lane,
    raw: lane,
    key: lane,
    text: () => JSON.stringify(lane),
  }));
  const asked = (lane: string) => ({ lane, raw: lane, key: () => lane, text: () => JSON.stringify(lane) });

  it("comes from the tape, the action at its call, all else live when both are done", () => {
    const replay = createReplay(recordings, { cut: { at: 0, action: true, prefix: new Set([1]) } });
    expect(replay.decide(asked("end")).kind).toBe("held");
    expect(replay.decide(asked("slow"))).toMatchObject({ kind: "action", recording: { index: 0 } });
    expect(replay.prefixDone).toBe(false);
    expect(replay.decide(asked("quick"))).toMatchObject({ kind: "tape", recording: { index: 1 } });
    expect(replay.prefixDone).toBe(true);
    expect(replay.decide(asked("end")).kind).toBe("live");
  });

  it("leaves out a call that was asked before the cut and not yet answered: it waits, and is live", () => {
    const replay = createReplay(recordings, { cut: { at: 1, action: true, prefix: new Set() } });
    expect(replay.decide(asked("slow")).kind).toBe("held");
    expect(replay.decide(asked("quick")).kind).toBe("action");
    expect(replay.decide(asked("slow")).kind).toBe("live");
  });

  it("is shared: whoever waits goes on when the last part is done, or finds that all is stopped", () => {
    const stops: string[] = [];
    const shared = createSharedPrefix(({ code }) => stops.push(code));
    const cut = { at: 1, action: false };
    const calls = createReplay(recordings, { cut, shared });
    const tools = createReplay(recordings, { cut, shared });
    let went = 0;
    shared.wait(() => went++);
    const leave = shared.wait(() => {
      throw new Error("it has left");
    });
    leave();
    calls.decide(asked("slow"));
    shared.advance();
    expect([went, calls.decide(asked("new")).kind]).toEqual([0, "held"]);
    tools.decide(asked("slow"));
    shared.advance();
    expect([went, calls.decide(asked("new")).kind, tools.decide(asked("new")).kind]).toEqual([1, "live", "live"]);
    shared.wait(() => went++);
    const first = new RootstepError("REPLAY_DIVERGED", { what: "the first" });
    expect(shared.stop(first)).toBe(first);
    expect(shared.stop(new RootstepError("USAGE", { what: "later" }))).toBe(first);
    expect([went, stops, shared.stopped]).toEqual([2, ["REPLAY_DIVERGED"], first]);
  });
});
