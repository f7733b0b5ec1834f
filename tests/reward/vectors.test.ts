import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { tracerReward } from "../../src/reward/reward.ts";

const label = z.strictObject({ agent: z.string(), step: z.number() });
const vectorsSchema = z.strictObject({
  comment: z.string(),
  tolerance: z.number(),
  vectors: z.array(
    z.strictObject({
      name: z.string(),
      text: z.string(),
      label,
      lam: z.number(),
      sigma: z.number(),
      reward: z.strictObject({ total: z.number(), format: z.number(), step: z.number(), agent: z.number() }),
      prediction: label.nullable(),
    }),
  ),
});

const { tolerance, vectors } = vectorsSchema.parse(
  JSON.parse(readFileSync(new URL("./vectors.json", import.meta.url), "utf8")),
);

describe("reward of §4.2 against independently computed vectors", () => {
  it.each(vectors)("$name", ({ text, label, lam, sigma, reward, prediction }) => {
    const actual = tracerReward(text, label, { lambda: lam, sigma });
    for (const part of ["total", "format", "step", "agent"] as const) {
      expect(Math.abs(actual[part] - reward[part]), part).toBeLessThanOrEqual(tolerance);
    }
    expect(actual.prediction ?? null).toEqual(prediction);
  });

  it("gives the values that e^(−d²/2) has on paper", () => {
    const at = (step: number) =>
      tracerReward(`<think></think><answer>A | ${step}</answer>`, { agent: "A", step: 10 }).total;
    expect(at(10)).toBe(1);
    expect(at(11)).toBeCloseTo(0.5 * 0.6065306597126334 + 0.5, 12);
    expect(at(12)).toBeCloseTo(0.5 * 0.1353352832366127 + 0.5, 12);
    expect(at(13)).toBeCloseTo(0.5 * 0.011108996538242306 + 0.5, 12);
  });
});
