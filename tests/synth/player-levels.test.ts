import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChatRequest } from "../../src/models/chat-model.ts";
import { firstDifference } from "../../synth/tape/difference.ts";
import { maskText } from "../../synth/tape/masks.ts";
import { createMatcher, type Recording } from "../../synth/tape/matcher.ts";
import { createPlayer } from "../../synth/tape/player.ts";
import { similarity } from "../../synth/tape/similarity.ts";

const request = (content: string): ChatRequest => ({ messages: [{ role: "user", content }] });
const response = (content: string) => ({ content, toolCalls: [], finishReason: "stop" as const, model: "m" });
const tapeOf = (calls: readonly (readonly [lane: string, asked: string, answer: string])[]) => ({
  version: 1 as const,
  calls: calls.map(([lane, asked, answer], index) => ({
    index,
    lane,
    request: request(asked),
    response: response(answer),
  })),
});

const A = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
const B = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
const C = "550e8400-e29b-41d4-a716-446655440000";

describe("masks", () => {
  it.each([
    ["at 2025-11-30T11:09:00.123Z or 2025-11-30 11:09", "at <time> or <time>"],
    ["today is 2025-11-30, it is 11:09:59", "today is <time>, it is <time>"],
    [`worker ${A} asks ${B}, then ${A}`, "worker <uuid1> asks <uuid2>, then <uuid1>"],
    [`run_${A.replaceAll("-", "")}`, "run_<uuid1>"],
    ["<object at 0x7f3a9c1d2e80>", "<object at <hex1>>"],
    ["stamp 1732964940 1732964940.1234 1732964940123", "stamp <epoch> <epoch> <epoch>"],
    ["id 12345678901234567", "id <number1>"],
    ["wrote /tmp/tmpa1b2c3d4/x.py and /var/tmp/tmp_zzzzzzz.txt", "wrote /tmp/<temp1>/x.py and /var/tmp/<temp2>.txt"],
    ["node made /tmp/agent-Xy12Zq/out", "node made /tmp/<temp1>/out"],
    ["took 3.417 s, 812 ms, 0.8444218515250481", "took <duration>, <duration>, <float>"],
    [`line\\n${A}\\t0xdeadbeef`, "line\n<uuid1>\n<hex1>"],
  ])("%s", (text, masked) => {
    expect(maskText(text).text).toBe(masked);
  });

  it.each([
    "There are 12 apples, 5 minutes and 3.5 s left; 48/2=24 and 1000000 or 123456789.",
    "The year 2024, pages 100-200, ratio 1.25, chapter 3:16, phone 555-1234",
    "see /tmp/output and /tmp/results.json",
    "a deadbeef cafe facade",
  ])("leaves what a task is about: %s", (text) => {
    expect(maskText(text)).toEqual({ text, tokens: [] });
  });
});

describe("the match levels", () => {
  it("matches at L1, binds ids and rewrites them in later answers, in tool calls too", async () => {
    const call = { id: "c1", name: "assign", arguments: `{"to":"${A}"}` };
    const tape = tapeOf([
      ["a", `workers: ${A}, ${B}`, `I choose ${B}, not ${A}.`],
      ["a", `you chose ${B}`, "done"],
    ]);
    const withTool = {
      ...tape,
      calls: tape.calls.map((taped) =>
        taped.index === 0 ? { ...taped, response: { ...taped.response, toolCalls: [call] } } : taped,
      ),
    };
    const player = createPlayer({ tape: withTool });
    // the same ids in the other's place: A stands for B and B for A
    const first = await player.model.complete(request(`workers: ${B}, ${C}`), { agent: "a" });
    expect(first.content).toBe(`I choose ${C}, not ${B}.`);
    expect(first.toolCalls[0]?.arguments).toBe(`{"to":"${B}"}`);
    expect((await player.model.complete(request(`you chose ${C}`), { agent: "a" })).content).toBe("done");
    expect(player.levels).toEqual({ L0: 0, L1: 2, L2: 0 });
  });

  it("diverges where an id comes back as another one: the link between calls is lost", async () => {
    const tape = tapeOf([
      ["a", `start ${A}`, "ok"],
      ["a", `go on with ${A}`, "ok"],
    ]);
    const player = createPlayer({ tape });
    await player.model.complete(request(`start ${B}`), { agent: "a" });
    await expect(player.model.complete(request(`go on with ${C}`), { agent: "a" })).rejects.toMatchObject({
      code: "REPLAY_DIVERGED",
      what: expect.stringContaining("the same text with other ids"),
    });
  });

  it("tells workers with the same masked prompt apart by the ids bound before", async () => {
    const tape = tapeOf([
      ["boss", `first ${A}, second ${B}`, "go"],
      ["w", `I am ${A}`, "one"],
      ["w", `I am ${B}`, "two"],
    ]);
    const player = createPlayer({ tape });
    const [first, second] = [C, "11111111-2222-4333-8444-555555555555"];
    await player.model.complete(request(`first ${first}, second ${second}`), { agent: "boss" });
    const answers = [];
    for (const id of [second, first])
      answers.push((await player.model.complete(request(`I am ${id}`), { agent: "w" })).content);
    expect(answers).toEqual(["two", "one"]);
  });

  it("can be told to match at L0 only", async () => {
    const player = createPlayer({ tape: tapeOf([["a", `x ${A}`, "ok"]]), masks: false });
    await expect(player.model.complete(request(`x ${B}`), { agent: "a" })).rejects.toMatchObject({
      code: "REPLAY_DIVERGED",
    });
  });

  it("replays any interleaving of the recorded lanes, every call once and in its lane's order", async () => {
    const questions = fc.array(fc.tuple(fc.constantFrom("a", "b", "c"), fc.constantFrom("q1", "q2", "q3")), {
      maxLength: 20,
    });
    await fc.assert(
      fc.asyncProperty(questions, fc.infiniteStream(fc.nat(1000)), async (calls, picks) => {
        const tape = tapeOf(calls.map(([lane, question], index) => [lane, question, `answer ${index}`]));
        const player = createPlayer({ tape });
        const lanes = new Map<string, { question: string; index: number }[]>();
        for (const [index, [lane, question]] of calls.entries()) {
          lanes.set(lane, [...(lanes.get(lane) ?? []), { question, index }]);
        }
        const pending: Promise<unknown>[] = [];
        for (const pick of picks) {
          const open = [...lanes].filter(([, queue]) => queue.length > 0);
          const [lane, queue] = open[pick % Math.max(1, open.length)] ?? [];
          const next = queue?.shift();
          if (lane === undefined || next === undefined) break;
          const asked = player.model.complete(request(next.question), { agent: lane });
          pending.push(asked.then(({ content }) => expect(content).toBe(`answer ${next.index}`)));
        }
        await Promise.all(pending);
        expect(player.unplayed()).toBe(0);
        expect(player.liveCalls).toBe(0);
      }),
      { seed: 11, numRuns: 200 },
    );
  });

  it("stays quick over ten thousand equal calls, and gives them back in order", () => {
    const recordings: Recording[] = Array.from({ length: 10_000 }, (_, index) => ({
      index,
      lane: "a",
      raw: "r",
      key: "k",
      text: () => "{}",
    }));
    const matcher = createMatcher(recordings);
    const asked = { lane: "a", raw: "r", key: () => "k", text: () => "{}" };
    for (let index = 0; index < 10_000; index++) expect(matcher.take(asked)?.recording.index).toBe(index);
    expect(matcher.take(asked)).toBeUndefined();
    matcher.giveBack(recordings[4321]!);
    expect(matcher.take(asked)?.recording.index).toBe(4321);
  });
});

describe("what a diverged replay says", () => {
  it("names the first field that differs, not counting what masks cover", () => {
    const recorded = {
      model: "m",
      messages: [{ content: `at 2025-01-01T00:00:00Z by ${A}` }, { content: "Count the apples." }],
    };
    const asked = {
      messages: [{ content: `at 2026-01-01T00:00:00Z by ${B}` }, { content: "Count the pears." }],
      model: "m",
    };
    expect(firstDifference(recorded, asked)).toBe(
      "messages[1].content, character 10\n    recorded: Count the apples.\n    asked:    Count the pears.",
    );
    expect(firstDifference(recorded, { ...asked, messages: recorded.messages })).toBeUndefined();
    expect(firstDifference({ a: [1] }, { a: [1, 2] })).toContain("a[1], character 0");
    expect(firstDifference({ tools: 1 }, {})).toContain("(absent)");
  });
});

describe("similarity", () => {
  it("is the Dice coefficient of the words", () => {
    // 2 · 3 common words / (4 + 4)
    expect(similarity("a b c d", "a b c e")).toBe(0.75);
    expect(similarity("", "")).toBe(1);
    expect(similarity("a a b", "a c")).toBeCloseTo(2 / 5);
    expect(similarity("x", "y")).toBe(0);
  });
});
