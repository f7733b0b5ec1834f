import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { renderLog, stepHeader } from "../../src/methods/shared/render-log.ts";
import { methodView } from "../../src/methods/view.ts";
import { run } from "../evaluation/items.ts";

function view(contents: readonly string[]) {
  const { trajectory } = run(
    "r",
    contents.map((_, i) => `Agent ${i % 3}`),
    0,
  );
  const steps = trajectory.steps.map((step, i) => ({ ...step, content: contents[i]! }));
  return methodView({ ...trajectory, steps }, { withReference: false });
}

describe("renderLog", () => {
  it("shows steps 0-based under their agents", () => {
    expect(renderLog(view(["hello", "world"])).text).toBe(
      "Step 0 · Agent: Agent 0\nhello\n\nStep 1 · Agent: Agent 1\nworld\n",
    );
  });

  it("shows tool calls, their results and retrieved passages", () => {
    const { trajectory } = run("r", ["A"], 0);
    const step = {
      ...trajectory.steps[0]!,
      content: "I look it up.",
      retrieved: [{ id: "d1", text: "Paris" }],
      toolCalls: [
        { id: "c1", name: "search", arguments: '{"q":1}', result: "three hits" },
        { id: "c2", name: "open", arguments: "{}", error: "404" },
      ],
    };
    const { text } = renderLog(methodView({ ...trajectory, steps: [step] }, { withReference: false }));
    for (const part of [
      "I look it up.",
      "[retrieved d1] Paris",
      '[tool call] search({"q":1})',
      "[tool result] three hits",
      "[tool error] 404",
    ]) {
      expect(text).toContain(part);
    }
  });

  it("keeps short steps whole and cuts the long one in the middle, saying how much", () => {
    const long = `${"a".repeat(5000)}${"z".repeat(5000)}`;
    const { text, cut } = renderLog(view(["short one", long, "short two"]), 1000);
    expect(text.length).toBeLessThanOrEqual(1000);
    expect(text).toContain("short one");
    expect(text).toContain("short two");
    expect(text).toMatch(/Agent 1\na{300,} \[…\d+ characters cut…\] z{200,}\n/);
    const kept = text.match(/a{3,}|z{3,}/g)!.join("").length;
    expect(cut).toMatchObject({ stepsCut: 1, charactersCut: 10_000 - kept, overBudget: false });
  });

  it("keeps every header within any budget, and never splits a surrogate pair", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: fc.constantFrom("x", "\n", "é", "🙂", "界"), maxLength: 300 }), {
          minLength: 1,
          maxLength: 30,
        }),
        fc.integer({ min: 1, max: 6000 }),
        (contents, budget) => {
          const shown = view(contents);
          const { text, cut } = renderLog(shown, budget);
          for (const step of shown.steps) expect(text).toContain(stepHeader(step));
          expect(Buffer.from(text).toString()).toBe(text);
          expect(cut?.overBudget ?? false).toBe(text.length > budget);
          const whole = renderLog(shown).text;
          expect(cut === undefined).toBe(whole.length <= budget);
          expect(cut?.charactersTotal ?? whole.length).toBe(whole.length);
          if (cut === undefined) expect(text).toBe(whole);
        },
      ),
    );
  });

  it("stays within the budget wherever the headers and notes leave room", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 5000 }), { minLength: 1, maxLength: 40 }), (lengths) => {
        const shown = view(lengths.map((length) => "x".repeat(length)));
        const budget = lengths.length * 80;
        const { text, cut } = renderLog(shown, budget);
        expect(text.length).toBeLessThanOrEqual(budget);
        expect(cut?.overBudget ?? false).toBe(false);
      }),
    );
  });
});
