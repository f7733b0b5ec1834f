import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parquetWriteFile } from "hyparquet-writer";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { gaia } from "../../../synth/tasks/gaia/gaia.ts";
import { gaiaMatch } from "../../../synth/tasks/gaia/score.ts";

describe("GAIA's scorer", () => {
  it("judges as question_scorer does, 1276 pairs from a transcription in Python", async () => {
    const text = await readFile(new URL("golden/gaia.json", import.meta.url), "utf8");
    const golden = z.array(z.tuple([z.string(), z.string(), z.boolean()])).parse(JSON.parse(text));
    expect(golden).toHaveLength(1276);
    expect(golden.filter(([, , match]) => match).length).toBeGreaterThan(60);
    for (const [answer, truth, match] of golden) {
      expect([answer, truth, gaiaMatch(answer, truth)]).toEqual([answer, truth, match]);
    }
  });
});

describe("the task set", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "rootstep-gaia-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const record = { task_id: "t1", Question: "How many?", Level: 1, "Final answer": "17", file_name: "" };
  const load = (path?: string) => gaia.load({ seed: 1, limit: 10, ...(path === undefined ? {} : { path }) });

  it("reads metadata as JSONL or Parquet, from the file or the folder above", async () => {
    mkdirSync(join(folder, "validation"));
    const attached = { ...record, task_id: "t2", file_name: "t2.xlsx", Level: "2" };
    const jsonl = join(folder, "validation", "metadata.jsonl");
    writeFileSync(jsonl, [record, attached].map((one) => JSON.stringify(one)).join("\n"));
    const tasks = await load(folder);
    expect(tasks.map(({ id, extra }) => [id, extra])).toEqual([
      ["gaia-t1", { kind: "assistant", level: 1 }],
      ["gaia-t2", { kind: "assistant", level: 2, fileName: "t2.xlsx" }],
    ]);
    const parquet = join(folder, "metadata.parquet");
    parquetWriteFile({
      filename: parquet,
      columnData: Object.keys(record).map((name) => ({ name, data: [record[name as keyof typeof record]] })),
    });
    expect(await load(parquet)).toEqual(tasks.slice(0, 1));
    expect(await load(jsonl)).toEqual(tasks);
    copyFileSync(parquet, join(folder, "metadata.level1.parquet"));
    const everything = await load(folder);
    expect(everything.map(({ id }) => id)).toEqual(["gaia-t1", "gaia-t2"]);
  });

  it("says where to get it, and refuses the test split, an empty folder and bytes that are no Parquet", async () => {
    await expect(load()).rejects.toMatchObject({
      code: "DATA_NOT_SHIPPED",
      what: expect.stringContaining("huggingface.co/datasets/gaia-benchmark/GAIA"),
    });
    await expect(load(folder)).rejects.toMatchObject({ code: "FILE_MISSING" });
    await expect(load(join(folder, "no"))).rejects.toMatchObject({ code: "FILE_MISSING" });
    const file = join(folder, "metadata.jsonl");
    writeFileSync(file, JSON.stringify({ ...record, "Final answer": "?" }));
    await expect(load(file)).rejects.toMatchObject({
      code: "DATA_INVALID",
      what: expect.stringContaining("test split"),
    });
    writeFileSync(file, JSON.stringify({ task_id: "t1" }));
    await expect(load(file)).rejects.toMatchObject({ code: "DATA_INVALID", where: expect.stringContaining("jsonl:1") });
    const broken = join(folder, "metadata.parquet");
    writeFileSync(broken, "PAR1 nothing PAR1");
    await expect(load(broken)).rejects.toMatchObject({ code: "DATA_INVALID" });
  });

  it("judges answers, none among them", async () => {
    const file = join(folder, "metadata.jsonl");
    writeFileSync(file, JSON.stringify(record));
    const [task] = await load(file);
    if (task === undefined) throw new Error("no task");
    expect(await gaia.check(task, "17.0")).toMatchObject({ success: true });
    expect(await gaia.check(task, "FINAL ANSWER: 17")).toMatchObject({ success: false });
    expect(await gaia.check(task, undefined)).toMatchObject({ success: false, detail: "the run gave no answer" });
  });
});
