import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { z } from "zod";
import { evalRun } from "../../src/cli/eval.ts";
import { EXIT, type ExitCode } from "../../src/errors.ts";
import { loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import type { Prediction } from "../../src/evaluation/prediction.ts";
import { readPredictions } from "../../src/evaluation/prediction-file.ts";
import { openAICompatible } from "../../src/models/openai-compatible.ts";
import { shippedPath } from "../../src/package-root.ts";
import { silentProgress } from "../../src/runs/progress.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { describeWithEngines, engineServers } from "./servers.ts";

/** The shortest logs of Algorithm-Generated: three to four thousand characters, three times what the server's context holds. */
const LOGS = ["38", "12"];
const CONTEXT = 1024;

const baseUrl = (): string => new URL("/v1", engineServers().vllm).href;

describeWithEngines("evaluation against vLLM", () => {
  const folder = temporaryFolder("eval-vllm");
  const data = join(folder, "logs");
  mkdirSync(join(data, "Algorithm-Generated"), { recursive: true });
  for (const log of LOGS) {
    const file = join("Algorithm-Generated", `${log}.json`);
    copyFileSync(shippedPath("data", "who_and_when", file), join(data, file));
  }

  /** `eval run` as the command line does it. */
  async function run(name: string, settings: object, model: object = {}): Promise<{ code: ExitCode; out: string }> {
    const out = join(folder, name);
    const config = {
      data: { folder: data },
      model: { provider: "openai-compatible", baseUrl: baseUrl(), model: "tiny", ...model },
      ...settings,
    };
    const code = await evalRun.start(
      (schema) => schema.parse(config),
      { out },
      {
        env: {},
        now: () => new Date(),
        signal: new AbortController().signal,
        progress: silentProgress,
        json: true,
        dryRun: false,
        version: "test",
        print() {},
        printLine() {},
      },
    );
    return { code: code ?? EXIT.ok, out };
  }
  const predictionsOf = (out: string) => readPredictions(join(out, "predictions.jsonl")).predictions;
  const answersOf = (out: string): string[] =>
    readFileSync(join(out, "calls.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => answerSchema.parse(JSON.parse(line)).response.content);
  const answerSchema = z.object({ response: z.object({ content: z.string() }) });
  const options = { maxTokens: 24 };

  it.each(["all-at-once", "step-by-step", "binary-search", "hybrid", "a2p", "raffles", "tracer"])(
    "%s asks about logs that the context does not hold: cut step by step, on record, and counted",
    async (method) => {
      const { code, out } = await run(method, { method, options, limit: 1 });
      expect(code).toBe(EXIT.ok);
      const [prediction] = predictionsOf(out);
      expect(prediction?.error).toBeUndefined();
      expect(prediction?.calls).toBeGreaterThan(0);
      const { promptTokens, completionTokens } = prediction?.usage ?? { promptTokens: 0, completionTokens: 0 };
      expect(completionTokens).toBeGreaterThan(0);
      expect(completionTokens).toBeLessThanOrEqual(24 * (prediction?.calls ?? 0));
      expect(promptTokens).toBeLessThanOrEqual(CONTEXT * (prediction?.calls ?? 0));
      expect(prediction?.cut?.charactersCut).toBeGreaterThan(0);
      expect(prediction?.cut?.overBudget).toBe(false);
      expect(prediction?.evidence.map(({ text }) => text).join("\n")).toMatch(
        /as too long \(.*maximum context length is 1024 tokens.*\); cut to \d+/u,
      );
      const scores: unknown = JSON.parse(readFileSync(join(out, "scores.json"), "utf8"));
      expect(scores).toMatchObject({ scores: { cut: 1, planned: 1, missing: 0, cost: { calls: prediction?.calls } } });
    },
    120_000,
  );

  it("counts the tokens that the server's own tokenizer counts", async () => {
    const messages = [
      { role: "system" as const, content: "Name the agent." },
      { role: "user" as const, content: "Hé 日本 \u0007 \n who?" },
    ];
    const model = openAICompatible({ baseUrl: baseUrl(), model: "tiny" });
    const { usage } = await model.complete({ messages, maxTokens: 5, temperature: 0 });
    const counted = await fetch(new URL("/tokenize", engineServers().vllm), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "tiny", messages, add_generation_prompt: true }),
    });
    expect(usage?.promptTokens).toBe(z.object({ count: z.number() }).parse(await counted.json()).count);
    expect(usage?.completionTokens).toBeLessThanOrEqual(5);
  });

  it("holds answers to a schema where asked to, and only there", async () => {
    for (const structured of ["auto", "never"]) {
      const { out } = await run(`structured-${structured}`, {
        method: "all-at-once",
        options: { maxTokens: 40, structured, logBudget: 200 },
      });
      for (const answer of answersOf(out)) expect(answer.startsWith("{")).toBe(structured === "auto");
      const evidence = predictionsOf(out).flatMap((prediction) => prediction.evidence.map(({ text }) => text));
      expect(evidence.join("\n")).not.toContain("refused structured output");
    }
  });

  it.each([true, false])("reads what stands after <think> and nothing in it (streamed: %s)", async (stream) => {
    const { items } = await loadWhoAndWhen({ dir: data });
    const [log] = items;
    const agents = [...new Set(log?.trajectory.steps.map(({ agent }) => agent))];
    const regex = `<think>Agent Name: Nobody</think>Agent Name: (${agents.join("|")})\\nStep Number: [0-4]\\nReason: [a-z]{3}`;
    const { out } = await run(
      `think-${stream}`,
      { method: "all-at-once", options: { maxTokens: 200, logBudget: 200 }, limit: 1 },
      { stream, extraBody: { structured_outputs: { regex } } },
    );
    const [prediction] = predictionsOf(out);
    expect(prediction?.rawOutput).toMatch(/^<think>Agent Name: Nobody<\/think>/u);
    expect(prediction).toMatchObject({ parsePath: "labelled-lines" });
    expect(prediction?.parseFailure).toBeUndefined();
    expect(agents).toContain(prediction?.agent);
    expect(prediction?.step).toBe(Number(/Step Number: (\d)/u.exec(prediction?.rawOutput ?? "")?.[1]));
  });

  it("says that an output ended inside its reasoning", async () => {
    const { out } = await run(
      "unfinished-thought",
      { method: "all-at-once", options: { maxTokens: 16, logBudget: 200 }, limit: 1 },
      { extraBody: { structured_outputs: { regex: "<think>[a-z ]{400}</think>" } } },
    );
    expect(predictionsOf(out)[0]).toMatchObject({
      agent: null,
      parseFailure: "the output ends inside its reasoning (the output reached its token limit)",
    });
  });

  it("goes on where a cap stopped it, asks nothing twice, and ends as an undisturbed run", async () => {
    const settings = { method: "step-by-step", options: { ...options, logBudget: 200 }, concurrency: 1 };
    const whole = await run("undisturbed", settings);
    const total = answersOf(whole.out).length;
    const stopped = run("stopped", { ...settings, maxCalls: total - 1 });
    await expect(stopped).rejects.toMatchObject({ code: "BUDGET_REACHED" });
    const out = join(folder, "stopped");
    expect(answersOf(out)).toHaveLength(total - 1);
    expect(predictionsOf(out)).toHaveLength(LOGS.length - 1);
    // Two calls more would be too many for the cap: what the folder holds is not asked again.
    expect((await run("stopped", { ...settings, maxCalls: 1 })).code).toBe(EXIT.ok);
    expect(answersOf(out)).toEqual(answersOf(whole.out));
    const timeless = ({ latencyMs: _, ...rest }: Prediction) => rest;
    expect(predictionsOf(out).map(timeless)).toEqual(predictionsOf(whole.out).map(timeless));
  });

  it("does not cut the log where the answer alone is longer than the context: the refusal is recorded", async () => {
    const { code, out } = await run("long-answer", { method: "all-at-once", options: { maxTokens: 2 * CONTEXT } });
    expect(code).toBe(EXIT.failed);
    for (const prediction of predictionsOf(out)) {
      expect(prediction.cut).toBeUndefined();
      expect(prediction.error).toMatchObject({
        code: "MODEL_REFUSED_REQUEST",
        message: expect.stringContaining("max_model_len=1024"),
      });
    }
  });
});
