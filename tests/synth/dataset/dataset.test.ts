import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isError } from "../../../src/errors.ts";
import { readTracerTraj } from "../../../src/formats/tracertraj/read.ts";
import { validateFile } from "../../../src/formats/validate.ts";
import { DEFAULT_LOG_BUDGET } from "../../../src/methods/tracer/tracer.ts";
import { tracerReward } from "../../../src/reward/reward.ts";
import type { Trajectory } from "../../../src/trajectory/schema.ts";
import { cardHeader, HUB_FILES, RUN_FILES, readCardHeader, sizeCategory } from "../../../synth/dataset/card-header.ts";
import { lessonOf } from "../../../synth/dataset/conversations.ts";
import { type ExportTarget, exportDataset } from "../../../synth/dataset/export.ts";
import { readTracerTrajParquet, tracerTrajParquet } from "../../../synth/dataset/parquet.ts";
import { validateDataset } from "../../../synth/dataset/validate.ts";
import { madeDataset, SMALL } from "./made-dataset.ts";

let made: Awaited<ReturnType<typeof madeDataset>>;
let dataset = "";
beforeAll(async () => {
  made = await madeDataset(SMALL);
  dataset = join(made.path, "dataset");
}, 120_000);
afterAll(() => rmSync(made.root, { recursive: true, force: true }));

async function trajectories(file: string): Promise<Trajectory[]> {
  const all: Trajectory[] = [];
  for await (const { trajectory } of readTracerTraj(file)) all.push(trajectory);
  return all;
}

const lines = (file: string): unknown[] =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

/** A copy of the dataset with one file changed. */
function spoiled(name: string, file: string, change: (content: string) => string): string {
  const copy = join(made.root, name);
  cpSync(dataset, copy, { recursive: true });
  writeFileSync(join(copy, file), change(readFileSync(join(copy, file), "utf8")));
  return copy;
}

describe("the dataset of a run", () => {
  it("is valid, and its Parquet holds the records of the JSON Lines", async () => {
    const validation = await validateDataset(made.path);
    expect(validation.faults).toEqual([]);
    expect(validation.records).toBe(made.report.dataset.train + made.report.dataset.test);
    for (const split of ["train", "test"]) {
      const rows = (await readTracerTrajParquet(join(dataset, `${split}.parquet`))).map(({ trajectory }) => trajectory);
      expect(JSON.parse(JSON.stringify(rows))).toEqual(lines(join(dataset, `${split}.jsonl`)));
    }
    expect(made.report.dataset.train).toBeGreaterThan(5);
    expect(made.report.dataset.test).toBeGreaterThan(0);
  });

  it("has a card whose files are there and whose counts are those of the records", async () => {
    const card = readFileSync(join(dataset, "README.md"), "utf8");
    const { header, body } = readCardHeader(card, "card");
    expect(header).toMatchObject({ license: "mit", size_categories: ["n<1K"], language: ["en"] });
    const configured = header.configs.flatMap(({ data_files }) => data_files.map(({ path }) => path));
    // `datasets` reads all configurations of a folder with one reader.
    expect(configured).toEqual(["train.parquet", "test.parquet"]);
    const paths = [...configured, ...header.tracertraj.jsonl.map(({ path }) => path)];
    expect(paths).toHaveLength(4);
    for (const path of paths) expect(existsSync(join(dataset, path))).toBe(true);
    const train = await trajectories(join(dataset, "train.jsonl"));
    const test = await trajectories(join(dataset, "test.jsonl"));
    const from = (all: Trajectory[], source: string) => all.filter(({ labels }) => labels[0]?.source === source).length;
    const groups = new Set(train.map(({ task }) => task.groupId)).size;
    expect(body).toContain(
      `| train | ${train.length} | ${groups} | ${from(train, "counterfactual")} | ${from(train, "injection")} |`,
    );
    const confirmed = lines(join(dataset, "evidence.jsonl")).filter((line) =>
      JSON.stringify(line).includes('"verdict":"earliest-confirmed"'),
    );
    expect(body).toContain(
      `| planner-solver-verifier | chain | counterfactual | earliest-confirmed | ${confirmed.length} | ${from(train, "counterfactual")} | ${from(test, "counterfactual")} |`,
    );
    const calls = lines(join(made.path, "searches.jsonl")).reduce<number>(
      (sum, line) => sum + Number(Reflect.get(Object(line), "liveCalls")),
      0,
    );
    expect(body).toContain(`live calls: ${calls} in searches`);
    expect(body).toContain("**Simulated.**");
  });

  it("names another licence than the hub's as other", () => {
    const given = { prettyName: "x", records: 1000, tags: [], files: RUN_FILES };
    const { header } = readCardHeader(`${cardHeader({ ...given, licence: "gated; ask" })}body`, "card");
    expect(header).toMatchObject({ license: "other", license_name: "gated; ask", size_categories: ["1K<n<10K"] });
    expect(cardHeader({ ...given, licence: "CC BY-SA 4.0" })).toContain("license: cc-by-sa-4.0");
    // The hub's own boundaries.
    expect([0, 999, 1000, 9999, 10_000, 1e6].map(sizeCategory)).toEqual([
      "n<1K",
      "n<1K",
      "1K<n<10K",
      "1K<n<10K",
      "10K<n<100K",
      "1M<n<10M",
    ]);
  });
});

describe("the cost in the report", () => {
  it("is that of the journals: calls of the label's own strategy, of recording and of injection, by the labels", () => {
    const { cost, dataset: split } = made.report;
    const calls = (file: string): number =>
      lines(join(made.path, file)).reduce<number>(
        (sum, line) => sum + Number(Reflect.get(Object(line), "liveCalls")),
        0,
      );
    const recorded = lines(join(made.path, "recordings.jsonl")).reduce<number>(
      (sum, line) => sum + Object(line).tape.calls.length,
      0,
    );
    expect(cost.parts.record?.calls).toBe(recorded);
    expect(cost.parts["search bayes"]?.calls).toBe(calls("searches.jsonl"));
    expect(cost.parts.inject?.calls).toBe(calls("injections.jsonl"));
    const all = recorded + calls("searches.jsonl") + calls("injections.jsonl");
    expect(cost.perLabel?.calls).toBeCloseTo(all / (split.train + split.test), 9);
    // The simulator has no price.
    expect(cost.perLabel?.money).toBeNull();
    expect(cost.unknown).toBe(0);
  });
});

describe("the validator", () => {
  const faultsOf = async (folder: string) => (await validateDataset(folder)).faults.map(({ message }) => message);

  it("finds a task group in both splits and a record that stands twice", async () => {
    const [first] = readFileSync(join(dataset, "train.jsonl"), "utf8").split("\n");
    const faults = await faultsOf(spoiled("twice", "test.jsonl", (content) => `${content}${first}\n`));
    expect(faults).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^the id .* stands in .*train\.jsonl:1 as well/u),
        expect.stringMatching(/^the task group .* is in both splits/u),
      ]),
    );
  });

  it("finds Parquet that differs from the JSON Lines, by one record or by one word", async () => {
    const copy = spoiled("other", "README.md", (card) => card);
    const train = await trajectories(join(copy, "train.jsonl"));
    const changed = train.map((one, index) => (index === 1 ? { ...one, system: "another" } : one));
    writeFileSync(join(copy, "train.parquet"), tracerTrajParquet(changed));
    expect(await faultsOf(copy)).toEqual([expect.stringMatching(/^not the record of .*train\.jsonl:2$/u)]);
    writeFileSync(join(copy, "train.parquet"), tracerTrajParquet(train.slice(1)));
    expect((await faultsOf(copy))[0]).toBe(`${train.length - 1} rows, the JSON Lines have ${train.length} records`);
  });

  it("finds a label without evidence, and one that its evidence contradicts", async () => {
    const without = await faultsOf(spoiled("bare", "evidence.jsonl", () => ""));
    expect(without).toHaveLength(made.report.dataset.train + made.report.dataset.test);
    expect(without[0]).toMatch(/^no (?:counterfactual|injection) evidence for /u);
    const against = spoiled("against", "evidence.jsonl", (content) =>
      content.replace(/"step":\d+,"agent"/gu, '"step":99,"agent"'),
    );
    expect(await faultsOf(against)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^the label names step \d+, .* step 99$/u)]),
    );
  });

  it("refuses a folder without a readable card", async () => {
    const error: unknown = await validateDataset(spoiled("cardless", "README.md", () => "# no head\n")).catch(
      (e: unknown) => e,
    );
    expect(isError(error, "DATA_INVALID")).toBe(true);
    const none: unknown = await validateDataset(join(made.root, "nothing")).catch((e: unknown) => e);
    expect(isError(none, "FILE_MISSING")).toBe(true);
  });
});

describe("export", () => {
  const exportTo = (to: ExportTarget, name: string = to, logBudget = DEFAULT_LOG_BUDGET) =>
    exportDataset({ from: made.path, to, out: join(made.root, name), logBudget });

  it("makes a hub folder that is itself a valid dataset", async () => {
    const exported = await exportTo("huggingface");
    expect(exported).toMatchObject({ written: made.report.dataset, leftOut: {}, losses: [] });
    const { faults, records } = await validateDataset(exported.out);
    expect(faults).toEqual([]);
    expect(records).toBe(made.report.dataset.train + made.report.dataset.test);
    for (const path of [...Object.values(HUB_FILES.parquet), ...Object.values(HUB_FILES.jsonl)]) {
      expect(existsSync(join(exported.out, path))).toBe(true);
    }
  });

  it("makes chats whose answers earn the full reward, without the reference answer in the prompt", async () => {
    const exported = await exportTo("sharegpt");
    expect(exported.written).toEqual(made.report.dataset);
    const train = await trajectories(join(dataset, "train.jsonl"));
    const chats = lines(join(exported.out, "train.jsonl"));
    expect(chats).toHaveLength(train.length);
    chats.forEach((chat, position) => {
      const { id, conversations } = chat as { id: string; conversations: { from: string; value: string }[] };
      const trajectory = train[position];
      const label = trajectory?.labels[0];
      if (trajectory === undefined || label === undefined) throw new Error("no such record");
      expect(id).toBe(trajectory.id);
      expect(conversations.map(({ from }) => from)).toEqual(["system", "human", "gpt"]);
      const [, human, gpt] = conversations;
      expect(tracerReward(gpt?.value ?? "", label).total).toBe(1);
      expect(human?.value).toContain(trajectory.steps.at(-1)?.content ?? "");
      expect(human?.value).not.toContain("correct answer to the task");
    });
  });

  it("makes OpenAI chats and a Who&When folder that reads back", async () => {
    const openai = await exportTo("openai");
    expect(lines(join(openai.out, "test.jsonl"))[0]).toMatchObject({
      messages: [{ role: "system" }, { role: "user" }, { role: "assistant" }],
    });
    const whoAndWhen = await exportTo("who-and-when");
    expect(await validateFile(join(whoAndWhen.out, "train"))).toMatchObject({
      format: "who-and-when",
      records: made.report.dataset.train,
      badRecords: 0,
    });
    expect(whoAndWhen.losses.length).toBeGreaterThan(0);
  });

  it("counts what it leaves out and what it shortens", async () => {
    const copy = spoiled("partly", "train.jsonl", (content) => {
      const [first = "", second = "", ...rest] = content.split("\n");
      const bare = JSON.stringify({ ...JSON.parse(first), labels: [] });
      const good = JSON.parse(second);
      return [bare, JSON.stringify({ ...good, outcome: { ...good.outcome, success: true } }), ...rest].join("\n");
    });
    const out = join(made.root, "partly-chats");
    const exported = await exportDataset({ from: copy, to: "sharegpt", out, logBudget: 40 });
    expect(exported.leftOut).toEqual({ "no label": 1, "run succeeded": 1 });
    expect(exported.written.train).toBe(made.report.dataset.train - 2);
    expect(exported.losses).toMatchObject([{ field: "steps", count: exported.written.train + exported.written.test }]);
  });

  it("leaves out a record whose agent's name the answer cannot hold", async () => {
    const [one] = await trajectories(join(dataset, "train.jsonl"));
    if (one?.labels[0] === undefined) throw new Error("no record");
    const odd = { ...one, labels: [{ ...one.labels[0], agent: "a\nb" }] };
    expect(lessonOf(odd, DEFAULT_LOG_BUDGET)).toBe("agent's name does not fit the answer");
  });

  it("overwrites nothing, and leaves nothing where it fails", async () => {
    await exportTo("parquet");
    const again: unknown = await exportTo("parquet").catch((e: unknown) => e);
    expect(isError(again, "USAGE")).toBe(true);
    const from = spoiled("broken", "train.jsonl", () => "{\n");
    const out = join(made.root, "never");
    const failed: unknown = await exportDataset({ from, to: "parquet", out, logBudget: 10 }).catch((e: unknown) => e);
    expect(isError(failed, "DATA_NOT_JSON") || isError(failed, "DATA_TRUNCATED")).toBe(true);
    expect(existsSync(out)).toBe(false);
  });
});
