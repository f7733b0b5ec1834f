import fc from "fast-check";
import { expect, it } from "vitest";
import { isPlainPrediction } from "../../src/evaluation/plain-prediction.ts";
import { predictionSchema } from "../../src/evaluation/prediction.ts";
import { checkSeeded } from "../formats/seeded.ts";
import { prediction } from "./predictions.ts";

const whole = prediction("a", "A", 1, {
  evidence: [{ text: "t", step: 1 }, { text: "u" }],
  rawOutput: "raw",
  confidence: 0.5,
  answers: 2,
  parseFailure: "none",
  noStepNamed: true,
});
const paths = ["usage.promptTokens", "usage.completionTokens", "evidence.0.step", "evidence.0.text"];
const names = [...Object.keys(whole), "ranking", "cut", "error", "score", "__proto__", ...paths];

/** The JSON of a prediction with one place taken out or set to something else. */
function changed(path: string, value: string | undefined): unknown {
  const copy: Record<string, unknown> = JSON.parse(JSON.stringify(whole));
  const parts = path.split(".");
  const last = parts.pop() ?? "";
  let at = copy;
  for (const part of parts) at = at[part] as Record<string, unknown>;
  if (value === undefined) delete at[last];
  else
    Object.defineProperty(at, last, { value: JSON.parse(value), enumerable: true, configurable: true, writable: true });
  return copy;
}
const odd = [
  "1",
  "0",
  "-1",
  "-0",
  "1.5",
  "1e999",
  "9007199254740993",
  '"x"',
  '"json"',
  '"shout"',
  "null",
  "true",
  "[]",
];
const objects = [
  "{}",
  '[{"text":"x"}]',
  '[{"text":"x","more":1}]',
  '[{"step":1}]',
  '[{"text":"x","step":1.5}]',
  "[[]]",
];
const usages = ['{"promptTokens":1,"completionTokens":2}', '{"promptTokens":1,"completionTokens":2,"more":1}'];

it("holds for a common prediction and for a bare one", () => {
  expect(isPlainPrediction(whole)).toBe(true);
  expect(isPlainPrediction(JSON.parse(JSON.stringify(prediction("a", null, null))))).toBe(true);
});

it("never passes what the schema refuses or would change, whatever stands in whatever place", async () => {
  const value = fc.option(fc.constantFrom(...odd, ...objects, ...usages), { nil: undefined });
  const property = fc.property(fc.constantFrom(...names), value, (path, json) => {
    const candidate = changed(path, json);
    if (!isPlainPrediction(candidate)) return;
    expect(predictionSchema.parse(candidate)).toEqual(candidate);
  });
  await checkSeeded("plain predictions", property, 5000);
});

it.each([[null], [[]], ["x"], [1], [{}]])("does not hold for %j", (value) => {
  expect(isPlainPrediction(value)).toBe(false);
});
