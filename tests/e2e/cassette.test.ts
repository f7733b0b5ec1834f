import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { shippedPath } from "../../src/package-root.ts";
import { cli, freshPath } from "../cli/run-cli.ts";

const CASSETTE = shippedPath("tests", "e2e", "cassettes", "smollm2-135m-all-at-once");

const answerSchema = z.strictObject({
  itemId: z.string(),
  agent: z.string().nullable(),
  step: z.number().nullable(),
  parsePath: z.string(),
  calls: z.number(),
});

describe("a run of a real model on real logs", () => {
  it("is repeated offline from its cassette, call for call and answer for answer", async () => {
    const expected = z.array(answerSchema).parse(JSON.parse(readFileSync(join(CASSETTE, "predictions.json"), "utf8")));
    const out = freshPath("cassette");
    mkdirSync(out);
    copyFileSync(join(CASSETTE, "calls.jsonl"), join(out, "calls.jsonl"));
    // Nothing listens at that port: a call that the cassette does not hold would end the run.
    const { code, stdout } = await cli([
      ...["eval", "run", "--method", "all-at-once", "--options", "{logBudget: 1500, maxTokens: 60}", "--out", out],
      ...["--limit", String(expected.length), "--model.provider", "openai-compatible", "--model.temperature", "0"],
      ...["--model.base-url", "http://127.0.0.1:18081/v1", "--model.model", "smollm2-135m-instruct-q4_1"],
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain(`${expected.length} of ${expected.length} predictions`);
    const answers = readFileSync(join(out, "predictions.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => answerSchema.parse(z.object(answerSchema.shape).parse(JSON.parse(line))));
    const byId = (a: { itemId: string }, b: { itemId: string }): number => (a.itemId < b.itemId ? -1 : 1);
    expect(answers.sort(byId)).toEqual([...expected].sort(byId));
  });
});
