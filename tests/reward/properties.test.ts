import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseTracerOutput } from "../../src/reward/format-gate.ts";
import { agentReward, stepKernel, tracerReward } from "../../src/reward/reward.ts";

const step = fc.nat({ max: 1_000_000 });
/** Names as logs have them, separators and remarks included; no line breaks and no tags. */
const agent = fc
  .string({ unit: "binary", minLength: 1, maxLength: 20 })
  .map((text) => text.replace(/[\s\u0085<>]/gu, "_"))
  .filter((text) => text !== "");
const soup = fc
  .array(
    fc.oneof(
      fc.constantFrom("<think>", "</think>", "<answer>", "</answer>", " | ", "|", "A", "4", " ", "\n", "٤", "<", ">"),
      fc.string({ maxLength: 4 }),
    ),
    { maxLength: 14 },
  )
  .map((parts) => parts.join(""));
const write = (name: string, at: number): string => `<think>because</think><answer>${name} | ${at}</answer>`;

describe("reward properties", () => {
  it("stays within [0, 1] in every part, whatever the output", () => {
    fc.assert(
      fc.property(
        soup,
        agent,
        step,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 1e-3, max: 1e3, noNaN: true }),
        (text, name, at, lambda, sigma) => {
          const reward = tracerReward(text, { agent: name, step: at }, { lambda, sigma });
          for (const part of [reward.total, reward.step, reward.agent]) {
            expect(part).toBeGreaterThanOrEqual(0);
            expect(part).toBeLessThanOrEqual(1);
          }
        },
      ),
    );
  });

  it("is zero in every part exactly when the gate is shut or nothing is right", () => {
    fc.assert(
      fc.property(soup, (text) => {
        const gate = parseTracerOutput(text);
        const reward = tracerReward(text, { agent: "A", step: 4 });
        expect(reward.format).toBe(gate.ok ? 1 : 0);
        if (!gate.ok) expect(reward).toMatchObject({ total: 0, step: 0, agent: 0 });
      }),
    );
  });

  it("does not grow with the distance to the label", () => {
    fc.assert(
      fc.property(step, step, step, fc.double({ min: 0.1, max: 100, noNaN: true }), (label, a, b, sigma) => {
        const [near, far] = Math.abs(a - label) <= Math.abs(b - label) ? [a, b] : [b, a];
        expect(stepKernel(near, label, sigma)).toBeGreaterThanOrEqual(stepKernel(far, label, sigma));
        expect(stepKernel(label + (a - label), label, sigma)).toBe(stepKernel(label - (a - label), label, sigma));
      }),
    );
  });

  it("reads back every answer that is written in the format", () => {
    fc.assert(
      fc.property(agent, fc.nat({ max: Number.MAX_SAFE_INTEGER }), (name, at) => {
        expect(parseTracerOutput(write(name, at))).toEqual({ ok: true, think: "because", agent: name, step: at });
      }),
    );
  });

  it("gives the full reward only for the labelled pair", () => {
    fc.assert(
      fc.property(agent, step, agent, step, (name, at, otherName, otherAt) => {
        const full = tracerReward(write(otherName, otherAt), { agent: name, step: at }).total === 1;
        expect(full).toBe(otherAt === at && agentReward(otherName, name) === 1);
      }),
    );
  });

  it("shuts the gate on one more tag anywhere", () => {
    const tags = fc.constantFrom("<think>", "</think>", "<answer>", "</answer>");
    fc.assert(
      fc.property(agent, step, tags, fc.nat(), (name, at, tag, position) => {
        const text = write(name, at);
        const cut = position % (text.length + 1);
        expect(parseTracerOutput(text.slice(0, cut) + tag + text.slice(cut)).ok).toBe(false);
      }),
    );
  });

  it("reads a long hostile output without backtracking", () => {
    const pieces = [" ".repeat(200_000), "</think> <answer>".repeat(50_000), "<think>".repeat(50_000)];
    for (const piece of pieces) expect(parseTracerOutput(`<think>${piece}x`).ok).toBe(false);
  });
});
