import { copyFileSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { shippedPath } from "../../src/package-root.ts";
import { cli, freshPath } from "../cli/run-cli.ts";

const CASSETTES = shippedPath("tests", "e2e", "cassettes");
const names = readdirSync(CASSETTES, { withFileTypes: true }).flatMap((entry) =>
  entry.isDirectory() ? [entry.name] : [],
);

const answerSchema = z.strictObject({
  itemId: z.string(),
  agent: z.string().nullable(),
  step: z.number().nullable(),
  parsePath: z.string(),
  calls: z.number(),
});
const byId = (a: { itemId: string }, b: { itemId: string }): number => (a.itemId < b.itemId ? -1 : 1);

describe("runs of real models on real logs", () => {
  const folder = freshPath("cassettes");
  const outcomes = new Map<string, Awaited<ReturnType<typeof cli>>>();
  beforeAll(async () => {
    for (const name of names) {
      const out = join(folder, name);
      mkdirSync(out, { recursive: true });
      copyFileSync(join(CASSETTES, name, "calls.jsonl"), join(out, "calls.jsonl"));
      // No server is started, and no call is allowed: one that the cassette does not hold would end the run.
      const config = join(CASSETTES, name, "config.yaml");
      outcomes.set(name, await cli(["eval", "run", "--config", config, "--out", out]));
    }
  }, 300_000);

  it.each(names)("%s is repeated offline from its cassette, call for call and answer for answer", (name) => {
    const expected = z
      .array(answerSchema)
      .parse(JSON.parse(readFileSync(join(CASSETTES, name, "predictions.json"), "utf8")));
    const { code, stdout, stderr } = outcomes.get(name)!;
    expect(code, stderr).toBe(0);
    expect(stdout).toContain(`${expected.length} of ${expected.length} predictions`);
    const answers = readFileSync(join(folder, name, "predictions.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => answerSchema.parse(z.object(answerSchema.shape).parse(JSON.parse(line))));
    expect(answers.sort(byId)).toEqual([...expected].sort(byId));
    // Nothing was asked anew, and the cassette holds nothing that the run does not use.
    const lines = (file: string): number => readFileSync(file, "utf8").split("\n").length - 1;
    const kept = lines(join(CASSETTES, name, "calls.jsonl"));
    expect(lines(join(folder, name, "calls.jsonl"))).toBe(kept);
    expect(expected.reduce((total, { calls }) => total + calls, 0)).toBeGreaterThanOrEqual(kept);
  });

  it("are compared on the logs they share, beside floors and published results", async () => {
    const baseline = "qwen2.5-coder-0.5b-all-at-once";
    const { code, stdout, stderr } = await cli(["eval", "compare", folder, "--baseline", baseline, "--json"]);
    expect(code, stderr).toBe(0);
    const paired = z.object({ step: z.object({ pairs: z.number() }) }).nullable();
    const row = z.object({ kind: z.string(), name: z.string(), paired });
    const { groups } = z
      .object({ groups: z.array(z.object({ name: z.string(), rows: z.array(row) })) })
      .parse(JSON.parse(stdout));
    const generated = groups.find(({ name }) => name === "Algorithm-Generated")!;
    const measured = generated.rows.filter(({ kind }) => kind === "measured");
    expect(Object.fromEntries(measured.map(({ name, paired: one }) => [name, one?.step.pairs ?? null]))).toEqual({
      [baseline]: null,
      "qwen2.5-coder-0.5b-step-by-step": 6,
      "smollm2-135m-all-at-once": 12,
    });
  });
});
