import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { z } from "zod";
import { shippedPath } from "../../src/package-root.ts";
import { cli, freshPath } from "../cli/run-cli.ts";
import { keptAnswerSchema, startAnswerServer } from "./answer-server.ts";
import { digest } from "./killed-runs.ts";
import { referenceAnalyzer } from "./reference-analyzer.ts";

const CASSETTE = shippedPath("tests", "e2e", "synth-cassettes", "smollm2-135m-coder-tester");
const read = (name: string): Buffer => readFileSync(join(CASSETTE, name));
const jsonLines = (text: string): unknown[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line): unknown => JSON.parse(line));

/** What the run with the real server came to, run by run. */
const recordedSchema = z.strictObject({
  successes: z.record(z.string(), z.boolean()),
  searches: z.array(
    z.strictObject({ id: z.string(), verdict: z.string(), step: z.number().nullable(), liveCalls: z.number() }),
  ),
});
const recordingSchema = z.object({ id: z.string(), outcome: z.object({ success: z.boolean() }) });
const searchSchema = z.object({
  id: z.string(),
  verdict: z.string(),
  step: z.number().optional(),
  liveCalls: z.number(),
});

it("a run on a real small model is repeated offline from its answers, call for call, whatever the concurrency", async () => {
  const kept = jsonLines(gunzipSync(read("answers.jsonl.gz")).toString()).map((line) => keptAnswerSchema.parse(line));
  const recorded = recordedSchema.parse(JSON.parse(read("records.json").toString()));
  // One server for both runs: its address is part of the model's name, and so of the data.
  const server = await startAnswerServer({
    answers: new Map(kept.map((answer) => [answer.key, answer])),
    byRule: referenceAnalyzer(jsonLines(read("tasks.jsonl").toString())),
  });
  const outs: string[] = [];
  try {
    for (const concurrency of ["1", "4"]) {
      const out = freshPath(`at-${concurrency}`);
      const files = ["--config", join(CASSETTE, "config.yaml"), "--tasks.path", join(CASSETTE, "tasks.jsonl")];
      const servers = ["--model.base-url", server.url, "--analyzer.base-url", server.url];
      const run = await cli(["synth", "run", ...files, ...servers, "--concurrency", concurrency, "--out", out]);
      expect(run, run.stderr).toMatchObject({ code: 0 });
      // Nothing was asked that the model had not been asked, and all that it had been.
      expect(server.missed).toEqual([]);
      expect(server.used.size).toBe(kept.length);
      outs.push(out);
    }
  } finally {
    await server.close();
  }
  const [alone = "", together = ""] = outs;
  const recordings = jsonLines(readFileSync(join(alone, "recordings.jsonl"), "utf8")).map((line) =>
    recordingSchema.parse(line),
  );
  expect(Object.fromEntries(recordings.map(({ id, outcome }) => [id, outcome.success]))).toEqual(recorded.successes);
  const searches = jsonLines(readFileSync(join(alone, "searches.jsonl"), "utf8")).map((line) => {
    const { step = null, ...search } = searchSchema.parse(line);
    return { ...search, step };
  });
  expect(searches).toEqual(recorded.searches);
  expect(digest(together, ["manifest.json", "ledger.sqlite"])).toEqual(
    digest(alone, ["manifest.json", "ledger.sqlite"]),
  );
});
