import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dataChoiceSchema, loadData } from "../../src/evaluation/data.ts";
import { loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import { floorsFor } from "../../src/evaluation/floors.ts";
import { writeJsonLines } from "../../src/formats/jsonl.ts";
import { readShippedManifest } from "../../src/formats/shipped-data.ts";
import { shippedPath } from "../../src/package-root.ts";
import { run } from "./items.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rootstep-data-"));
});
afterAll(() => rm(folder, { recursive: true }));
const load = (choice: unknown) => loadData(dataChoiceSchema.parse(choice));

describe("the version of data", () => {
  it("is the shipped manifest's checksum of each half", async () => {
    const { combined } = await readShippedManifest(shippedPath("data", "who_and_when"));
    const { "Algorithm-Generated": generated, "Hand-Crafted": crafted } = combined;
    expect((await load({})).version).toEqual({ "Algorithm-Generated": generated, "Hand-Crafted": crafted });
    expect((await load({ subset: "hand-crafted" })).version).toEqual({ "Hand-Crafted": crafted });
  });

  it("is the same wherever the data lies, and another when a byte changes", async () => {
    const copy = join(folder, "copy");
    await cp(shippedPath("data", "who_and_when", "Hand-Crafted"), join(copy, "Hand-Crafted"), { recursive: true });
    const before = (await load({ subset: "hand-crafted" })).version;
    expect((await load({ folder: copy, subset: "hand-crafted" })).version).toEqual(before);
    const file = join(copy, "Hand-Crafted", "7.json");
    await writeFile(file, `${await readFile(file, "utf8")} `);
    expect((await load({ folder: copy, subset: "hand-crafted" })).version).not.toEqual(before);
  });
});

describe("a TracerTraj dataset folder", () => {
  const dataset = async (name: string): Promise<string> => {
    const path = join(folder, name);
    await mkdir(path, { recursive: true });
    const of = (prefix: string, count: number) =>
      Array.from({ length: count }, (_, i) => run(`${prefix}${i}`, ["P", "S", "V"], i % 2 === 0 ? 2 : 1).trajectory);
    await writeJsonLines(join(path, "train.jsonl"), of("train", 5));
    await writeJsonLines(join(path, "test.jsonl"), of("test", 3));
    await writeFile(join(path, "evidence.jsonl"), "{}\n");
    return path;
  };

  it("is evaluated on its test split, with the train split to learn layout floors from", async () => {
    const path = await dataset("tt");
    const set = await load({ folder: path });
    expect(set.items.map(({ id }) => id)).toEqual(["test0", "test1", "test2"]);
    expect(set.train).toHaveLength(5);
    expect(Object.keys(set.version)).toEqual(["test.jsonl", "train.jsonl"]);
    const floors = floorsFor(set.items, { train: set.train });
    expect(floors.find(({ id, tolerance }) => id === "layout-mode-step" && tolerance === 0)!.value).toBeCloseTo(2 / 3);
  });

  it("gives another split when told, and says when it is not there", async () => {
    const path = await dataset("tt2");
    expect((await load({ folder: path, split: "all" })).items).toHaveLength(8);
    const train = await load({ folder: path, split: "train" });
    expect(train.items).toHaveLength(5);
    expect(train.train).toBeUndefined();
    await rm(join(path, "test.jsonl"));
    await expect(load({ folder: path })).rejects.toMatchObject({ code: "FILE_MISSING", where: path });
  });

  it("is the only thing that has splits", async () => {
    await expect(load({ split: "test" })).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  });
});

describe("a folder like Who&When", () => {
  const record = (step: unknown, question = "q") => ({
    question,
    question_ID: question,
    history: ["A", "B", "C"].map((role) => ({ role, content: `${role} speaks` })),
    mistake_agent: "C",
    mistake_step: step,
  });
  const write = async (name: string, records: readonly unknown[]): Promise<string> => {
    const path = join(folder, name);
    await mkdir(path, { recursive: true });
    for (const [i, one] of records.entries()) await writeFile(join(path, `${i}.json`), JSON.stringify(one));
    return path;
  };

  it("counts from 0 unless told, and reports labels that do not fit then", async () => {
    const path = await write("one-based", [record("3"), record(3, "r")]);
    const { items, problems } = await load({ folder: path });
    expect(items).toEqual([]);
    expect(problems.map(({ kind }) => kind)).toEqual(["label-outside", "label-outside"]);
  });

  it("is converted from 1 when told, and records it", async () => {
    const path = await write("one-based-2", [record("3"), record(3, "r")]);
    const { items, problems } = await load({ folder: path, indexBase: 1 });
    expect(problems).toEqual([]);
    expect(items.map(({ label }) => [label.agent, label.step])).toEqual([
      ["C", 2],
      ["C", 2],
    ]);
    expect(items[0]!.trajectory.provenance.conversions).toEqual(["mistake_step: counted from 1 (3), now from 0 (2)"]);
    expect(items[1]!.trajectory.provenance.conversions).toHaveLength(2);
  });

  it("says that step 0 cannot be counted from 1", async () => {
    const path = await write("zero", [record("0")]);
    const { problems } = await load({ folder: path, indexBase: 1 });
    expect(problems).toMatchObject([{ kind: "label-outside", message: expect.stringContaining("counted from 1") }]);
  });

  it("leaves out what cannot be read only when told", async () => {
    const path = await write("bad", [record("2"), { history: [], mistake_step: "1" }]);
    await expect(load({ folder: path })).rejects.toMatchObject({ code: "DATA_INVALID" });
    const { items, problems } = await load({ folder: path, skipBad: true });
    expect(items).toHaveLength(1);
    expect(problems).toMatchObject([{ kind: "bad-record", dropped: true }]);
  });

  it("reads the shipped release with base 0 as without it", async () => {
    const [plain, told] = [await loadWhoAndWhen(), await loadWhoAndWhen({ indexBase: 0 })];
    expect(told.items).toEqual(plain.items);
  });

  it("refuses a base for formats that say it themselves, and folders of unknown content", async () => {
    const file = join(folder, "x.jsonl");
    await writeJsonLines(file, [run("a", ["A"], 0).trajectory]);
    await expect(load({ files: [file], indexBase: 1 })).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    await mkdir(join(folder, "empty"));
    await expect(load({ folder: join(folder, "empty") })).rejects.toMatchObject({ code: "DATA_UNKNOWN_FORMAT" });
    await expect(load({ folder: join(folder, "nowhere") })).rejects.toMatchObject({ code: "FILE_MISSING" });
  });
});
