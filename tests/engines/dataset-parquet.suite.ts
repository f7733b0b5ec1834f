import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readTracerTraj } from "../../src/formats/tracertraj/read.ts";
import { writeTracerTraj } from "../../src/formats/tracertraj/write.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { type CardHeader, HUB_FILES, RUN_FILES, type SplitFiles } from "../../synth/dataset/card-header.ts";
import { exportDataset } from "../../synth/dataset/export.ts";
import { openDatasetFolder } from "../../synth/dataset/folder.ts";
import { madeDataset } from "../synth/dataset/made-dataset.ts";
import { describeWithEngines, engineServers } from "./servers.ts";

/** Both splits of each folder by pyarrow, without its card, and by Hugging Face `datasets`, which goes by the card. */
const READ = `
import json, sys
import pyarrow.parquet as pq
from datasets import get_dataset_config_names, load_dataset
cache, folders = sys.argv[1], json.loads(sys.argv[2])
told = {}
for folder, files in folders.items():
    tables = {split: pq.read_table(file) for split, file in files["parquet"].items()}
    loaded = load_dataset(folder, cache_dir=cache)
    lines = load_dataset("json", data_files=files["jsonl"], cache_dir=cache)
    told[folder] = {
        "types": {field.name: str(field.type) for field in tables["train"].schema},
        "sameTypes": tables["train"].schema.equals(tables["test"].schema),
        "pyarrow": {split: table.to_pylist() for split, table in tables.items()},
        "configs": get_dataset_config_names(folder),
        "datasets": {split: rows.to_list() for split, rows in loaded.items()},
        "lines": {split: list(rows["id"]) for split, rows in lines.items()},
    }
print(json.dumps(told))
`;

interface Told {
  readonly types: Readonly<Record<string, string>>;
  readonly sameTypes: boolean;
  readonly configs: readonly string[];
  readonly pyarrow: Splits<unknown>;
  readonly datasets: Splits<unknown>;
  readonly lines: Splits<string>;
}
type Splits<T> = Readonly<Record<"train" | "test", readonly T[]>>;

const text = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value));

/** A trajectory as the README of a dataset says its columns are: every field there, null where absent, JSON text for the rest. */
function rowOf({ task, steps, outcome, labels, provenance, extra, ...rest }: Trajectory) {
  const absent = <K extends string>(...names: K[]) => Object.fromEntries(names.map((name) => [name, null]));
  return {
    ...rest,
    task: { ...absent("referenceAnswer", "referenceSolution"), ...task, extra: text(task.extra) },
    steps: steps.map((step) => ({
      ...absent("role", "usage", "startedAt", "endedAt"),
      ...step,
      toolCalls: step.toolCalls.map((call) => ({
        ...absent("result", "error", "startedAt", "endedAt", "emptyIsValid"),
        ...call,
        extra: text(call.extra),
      })),
      retrieved: step.retrieved.map((document) => ({ ...absent("score", "source"), ...document })),
      extra: text(step.extra),
    })),
    outcome: { ...absent("answer", "detail"), ...outcome },
    labels: labels.map((label) => ({
      ...absent("verdict", "evidenceRef", "confidence", "annotator", "reason", "createdAt"),
      ...label,
      extra: text(label.extra),
    })),
    provenance: {
      ...absent("model", "format", "file"),
      ...provenance,
      seed: text(provenance.seed),
      extra: text(provenance.extra),
    },
    extra: text(extra),
  };
}

/** What runs on the simulator have none of: tool calls, retrieved texts, usage, text of every plane, extra fields. */
const full = (like: Trajectory): Trajectory => ({
  ...like,
  id: "full-𝄞\n\u0000",
  steps: like.steps.map((step) => ({
    ...step,
    role: "assistant",
    toolCalls: [
      { id: "a", name: "search", arguments: '{"q":"é"}', result: "", emptyIsValid: true, extra: { ms: 1.5 } },
      { id: "b", name: "search", arguments: "{", error: "no JSON" },
    ],
    retrieved: [
      { id: "d1", text: "", score: 0.25, source: "wiki" },
      { id: "d2", text: "long ".repeat(5000) },
    ],
    callIds: ["c0", "c1"],
    usage: { promptTokens: 2 ** 40, completionTokens: 0 },
    startedAt: "2026-01-01T00:00:00Z",
  })),
  extra: { nested: [{ deep: null }, "ü"] },
});

const filesBelow = (folder: string, { parquet, jsonl }: CardHeader["files"]): CardHeader["files"] => {
  const whole = ({ train, test }: SplitFiles) => ({ train: join(folder, train), test: join(folder, test) });
  return { parquet: whole(parquet), jsonl: whole(jsonl) };
};

describeWithEngines("a TracerTraj data set read by pyarrow and by Hugging Face datasets", () => {
  let made: { readonly root: string; readonly path: string };
  let told: Readonly<Record<string, Told>>;
  let folders: Readonly<Record<string, CardHeader["files"]>>;

  beforeAll(async () => {
    made = await madeDataset({
      tasks: { set: "chain", limit: 20 },
      model: { regime: "systematic" },
      search: { strategies: ["paper"] },
      inject: { operator: "none" },
      dataset: { testShare: 0.3 },
    });
    const run = await openDatasetFolder(made.path);
    const train: Trajectory[] = [];
    for await (const { trajectory } of readTracerTraj(run.files.jsonl.train)) train.push(trajectory);
    const [first] = train;
    if (first === undefined) throw new Error("the data set is empty");
    await writeTracerTraj([...train, full(first)], run.files.jsonl.train);
    const [hub, parquet] = [join(made.root, "hub"), join(made.root, "parquet")];
    // The hub folder and its Parquet are made from the JSON Lines, now with a record that has every field.
    await exportDataset({ from: made.path, to: "huggingface", out: hub, logBudget: 10_000 });
    await exportDataset({ from: made.path, to: "parquet", out: parquet, logBudget: 10_000 });
    for (const split of ["train", "test"] as const) {
      const bytes = readFileSync(join(parquet, `${split}.parquet`));
      expect(bytes.equals(readFileSync(join(hub, HUB_FILES.parquet[split])))).toBe(true);
    }
    folders = { [run.path]: filesBelow(run.path, RUN_FILES), [hub]: filesBelow(hub, HUB_FILES) };
    const output = execFileSync(
      engineServers().python,
      ["-c", READ, join(made.root, "cache"), JSON.stringify(folders)],
      {
        encoding: "utf8",
        maxBuffer: 2 ** 28,
        stdio: ["ignore", "pipe", "pipe"],
        env: { PATH: process.env.PATH, HOME: made.root, HF_HOME: join(made.root, "hf"), HF_HUB_OFFLINE: "1" },
      },
    );
    told = JSON.parse(output);
  });
  afterAll(() => rmSync(made.root, { recursive: true, force: true }));

  it("gives both the same rows as its JSON Lines, in the run folder and as a hub folder", async () => {
    for (const [folder, files] of Object.entries(folders)) {
      const isRun = folder.startsWith(made.path);
      for (const split of ["train", "test"] as const) {
        const rows: unknown[] = [];
        for await (const { trajectory } of readTracerTraj(files.jsonl[split])) rows.push(rowOf(trajectory));
        expect(told[folder]?.lines[split]).toHaveLength(rows.length);
        // The run folder's Parquet was written before the full record came.
        const written = isRun && split === "train" ? rows.slice(0, -1) : rows;
        expect(written.length).toBeGreaterThan(0);
        expect(told[folder]?.pyarrow[split]).toEqual(written);
        expect(told[folder]?.datasets[split]).toEqual(written);
      }
    }
  });

  it("names one configuration, whose splits have the same typed columns", () => {
    for (const { configs, types, sameTypes } of Object.values(told)) {
      expect(configs).toEqual(["default"]);
      expect(sameTypes).toBe(true);
      expect(types).toMatchObject({ schemaVersion: "int64", id: "string", extra: "string" });
      expect(types.labels).toMatch(/^list<.*struct<agent: string not null, step: int64 not null, source: string/u);
      expect(types.steps).toMatch(/usage: struct<promptTokens: int64 not null, completionTokens: int64 not null>/u);
    }
  });
});
