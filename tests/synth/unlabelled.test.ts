import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { renderSynth } from "../../src/cli/synth.ts";
import { readPredictions } from "../../src/evaluation/prediction-file.ts";
import { readTracerTraj } from "../../src/formats/tracertraj/read.ts";
import { validateFile } from "../../src/formats/validate.ts";
import { methodById } from "../../src/methods/registry.ts";
import { modelConfigSchema, modelFromConfig } from "../../src/models/resolve.ts";
import { attributeUnlabelled } from "../../synth/dataset/attribute-unlabelled.ts";
import { validateDataset } from "../../synth/dataset/validate.ts";
import { type SearchRecord, searchRecordSchema } from "../../synth/pipeline/records.ts";
import { chatBodySchema, chatCompletion } from "../../synth/simulator/chat-wire.ts";
import { type LoopbackServer, startServer } from "../models/loopback.ts";
import { cleanUp, freshRun, runIn } from "./worker-setting.ts";

/** So few live calls that many searches end undecided. */
const SETTINGS = {
  seed: 4,
  tasks: { set: "chain", limit: 16 },
  model: { provider: "simulator", regime: "systematic", hardRate: 0.8, noise: 0 },
  search: { maxLiveCalls: 100 },
} as const;

const lines = <T>(file: string): T[] =>
  readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line) => (line === "" ? [] : [JSON.parse(line) as T]));

const folder = mkdtempSync(join(tmpdir(), "rootstep-unlabelled-"));
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await cleanUp();
});

async function idsIn(file: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const { trajectory } of readTracerTraj(file)) ids.push(trajectory.id);
  return ids;
}

describe("failed runs without a label", () => {
  const path = freshRun();
  let report: Awaited<ReturnType<typeof runIn>>;
  let searches: SearchRecord[] = [];
  beforeAll(async () => {
    report = await runIn(path, { settings: SETTINGS });
    searches = lines<unknown>(join(path, "searches.jsonl")).map((line) => searchRecordSchema.parse(line));
  }, 120_000);

  it("stand in a file of their own, with no label, in no split; report and card count them by why", async () => {
    const file = join(path, "unlabelled.jsonl");
    const unlabelled = await idsIn(file);
    const without = searches.filter(({ verdict }) => verdict !== "earliest-confirmed");
    expect(without.length).toBeGreaterThan(3);
    expect(unlabelled).toEqual(without.map(({ id }) => id));
    expect(unlabelled.length).toBeLessThan(report.failedRuns);
    const validation = await validateFile(file);
    expect([validation.records, validation.faults]).toEqual([unlabelled.length, []]);
    for await (const { trajectory } of readTracerTraj(file)) {
      expect([trajectory.labels, trajectory.outcome.success]).toEqual([[], false]);
    }
    const train = await idsIn(join(path, "dataset", "train.jsonl"));
    const test = await idsIn(join(path, "dataset", "test.jsonl"));
    expect([...train, ...test].filter((id) => unlabelled.includes(id))).toEqual([]);
    expect((await validateDataset(path)).faults).toEqual([]);
    const undecided = without.filter(({ verdict }) => verdict === "undecided").length;
    expect(report.unlabelled.undecided).toBe(undecided);
    expect(Object.values(report.unlabelled).reduce((a, b) => a + b, 0)).toBe(unlabelled.length);
    expect(renderSynth(report)).toContain(`${undecided} undecided`);
    expect(readFileSync(join(path, "dataset", "README.md"), "utf8")).toContain(
      `Failed runs without a label: ${unlabelled.length} (`,
    );
  });

  it("can be attributed, and the predictions are the prior of exactly these runs in a search anew", async () => {
    const out = join(folder, "last.jsonl");
    const method = methodById("floor-last-step").configure();
    const options = { file: join(path, "unlabelled.jsonl"), out, method, seed: 1, now: () => 0 };
    const unlabelled = await idsIn(options.file);
    expect(await attributeUnlabelled(options)).toEqual({ asked: unlabelled.length, known: 0, unnamed: 0 });
    expect(await attributeUnlabelled(options)).toEqual({ asked: 0, known: unlabelled.length, unnamed: 0 });
    expect(readPredictions(out).predictions.map(({ itemId }) => itemId)).toEqual(unlabelled);
    const again = freshRun();
    await runIn(again, { settings: { ...SETTINGS, search: { ...SETTINGS.search, prior: out, priorStrength: 0.7 } } });
    const anew = lines<unknown>(join(again, "searches.jsonl")).map((line) => searchRecordSchema.parse(line));
    expect(anew.map(({ id }) => id)).toEqual(searches.map(({ id }) => id));
    for (const { id, prior } of anew) {
      expect([id, prior === undefined]).toEqual([id, !unlabelled.includes(id)]);
      if (prior !== undefined) expect(prior.at(-1)).toBeCloseTo(0.7, 12);
    }
  }, 120_000);

  it("a file that breaks off in a line is refused, and a method without its model", async () => {
    const out = join(folder, "torn.jsonl");
    writeFileSync(out, '{"itemId": "x"');
    const options = { file: join(path, "unlabelled.jsonl"), out, seed: 1, now: () => 0 };
    const last = methodById("floor-last-step").configure();
    await expect(attributeUnlabelled({ ...options, method: last })).rejects.toMatchObject({ code: "RUN_CORRUPT" });
    const asking = methodById("all-at-once").configure();
    await expect(attributeUnlabelled({ ...options, method: asking })).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  });
});

/** A model server that knows the analyzer's prompts from the simulator's, and answers attribution with a step it is told. */
async function attributionServer(answer: (log: string) => string): Promise<LoopbackServer> {
  return startServer(({ body }, response) => {
    const asked = chatBodySchema.parse(JSON.parse(body));
    const content = answer(asked.messages.map((message) => message.content).join("\n"));
    response.setHeader("content-type", "application/json");
    const made = { content, toolCalls: [], finishReason: "stop", model: "attributor" } as const;
    response.end(JSON.stringify(chatCompletion("id", 0, made)));
  });
}

describe("a prior that asks a model (all-at-once) at a model server", () => {
  it("names the step it was told in every prediction; nonsense is an answer that names nothing", async () => {
    const path = freshRun();
    await runIn(path, { settings: SETTINGS });
    const file = join(path, "unlabelled.jsonl");
    const ids = await idsIn(file);
    const method = methodById("all-at-once").configure();
    for (const [name, text, unnamed] of [
      ["told", "Agent Name: solver\nStep Number: 1\nReason for Mistake: because", 0],
      ["nonsense", "The weather is fine.", ids.length],
    ] as const) {
      const server = await attributionServer(() => text);
      try {
        const config = {
          provider: "openai-compatible",
          baseUrl: `${server.url}/v1`,
          model: "attributor",
          stream: false,
        };
        const model = modelFromConfig(modelConfigSchema.parse(config), {});
        const out = join(folder, `${name}.jsonl`);
        const counts = await attributeUnlabelled({ file, out, method, model, seed: 1, now: () => 0 });
        expect(counts).toEqual({ asked: ids.length, known: 0, unnamed });
        expect(server.seen).toHaveLength(ids.length);
        // The method is not shown the answer.
        for (const { body } of server.seen) expect(body).not.toMatch(/Right final answer/u);
        const steps = readPredictions(out).predictions.map(({ step }) => step);
        expect(new Set(steps)).toEqual(new Set([unnamed === 0 ? 1 : null]));
      } finally {
        await server.close();
      }
    }
  }, 120_000);

  it("is asked once about each failed run by synth run itself, and paid for; its answer is the prior", async () => {
    const server = await attributionServer((prompt) =>
      prompt.includes("You are the analyzer")
        ? '{"action": null, "reason": "I cannot"}'
        : "Agent Name: solver\nStep Number: 1\nReason for Mistake: because",
    );
    try {
      const path = freshRun();
      const analyzer = {
        provider: "openai-compatible",
        baseUrl: `${server.url}/v1`,
        model: "attributor",
        stream: false,
      } as const;
      const report = await runIn(path, {
        settings: {
          ...SETTINGS,
          analyzer,
          inject: { operator: "none" },
          search: {
            ...SETTINGS.search,
            maxLiveCalls: 20,
            analyzerAttempts: 1,
            prior: "all-at-once",
            priorStrength: 0.6,
          },
        },
      });
      const searches = lines<unknown>(join(path, "searches.jsonl")).map((line) => searchRecordSchema.parse(line));
      expect(searches.length).toBe(report.failedRuns);
      for (const { prior = [] } of searches) expect(prior[1]).toBeCloseTo(0.6, 12);
      const attributions = server.seen.filter(({ body }) => !body.includes("You are the analyzer"));
      expect(attributions).toHaveLength(report.failedRuns);
      const perRun = lines<{ readonly liveCalls: number }>(join(path, "searches.jsonl"));
      expect(report.cost.parts["search bayes"]?.calls).toBeGreaterThanOrEqual(
        report.failedRuns + perRun.reduce((sum, { liveCalls }) => sum + liveCalls, 0),
      );
      expect(Object.values(report.unlabelled).reduce((a, b) => a + b, 0)).toBe(report.failedRuns);
    } finally {
      await server.close();
    }
  }, 120_000);
});
