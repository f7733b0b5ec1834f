import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RootstepError } from "../../src/errors.ts";
import { formatById } from "../../src/formats/registry.ts";
import { readTracerTraj } from "../../src/formats/tracertraj/read.ts";
import { writeTracerTraj } from "../../src/formats/tracertraj/write.ts";
import { validateFile } from "../../src/formats/validate.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { anyTrajectories } from "./arbitrary-trajectory.ts";
import { formatConformance, readAll } from "./format.conformance.ts";

const format = { ...formatById("tracertraj"), write: writeTracerTraj };

const sample = (id: string): Trajectory => ({
  schemaVersion: 1,
  id,
  task: { id: "t", text: "2 + 2?", source: "chain", groupId: "t" },
  system: "solver-checker",
  stepPolicy: "per-call",
  steps: [
    { index: 0, agent: "Solver", kind: "message", content: "5", toolCalls: [], retrieved: [], callIds: [] },
    { index: 1, agent: "Checker", kind: "message", content: "fine", toolCalls: [], retrieved: [], callIds: [] },
  ],
  outcome: { success: false, checker: "number" },
  labels: [{ agent: "Solver", step: 0, source: "counterfactual" }],
  provenance: { kind: "recorded", simulated: false, conversions: [] },
});
const lines = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, i) => JSON.stringify(sample(`run-${from + i}`)));

for (const name of ["runs.jsonl", "runs.jsonl.gz"]) {
  formatConformance({
    format,
    trajectories: anyTrajectories(),
    target: (folder) => join(folder, name),
    plant: async (folder, good, bad) => {
      const source = join(folder, name);
      const before = Buffer.from(`${lines(0, good).join("\n")}\n`);
      const after = Buffer.from(`\n${lines(good, 2 * good).join("\n")}\n`);
      const bytes = Buffer.concat([before, bad, after]);
      await writeFile(source, name.endsWith(".gz") ? gzipSync(bytes, { level: 1 }) : bytes);
      return { source, where: `${source}:${good + 1}` };
    },
  });
}

describe("TracerTraj records", () => {
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "rootstep-tracertraj-"));
  });
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });
  const fileOf = async (name: string, records: readonly unknown[]): Promise<string> => {
    const file = join(folder, name);
    await writeFile(file, records.map((record) => `${JSON.stringify(record)}\n`).join(""));
    return file;
  };
  const faultsOf = async (records: readonly unknown[]): Promise<RootstepError[]> => {
    const bad: RootstepError[] = [];
    for await (const _ of readTracerTraj(await fileOf("faults.jsonl", records), { onBad: (e) => bad.push(e) }));
    return bad;
  };

  test("another schema version is named, not read", async () => {
    const [bad] = await faultsOf([{ ...sample("a"), schemaVersion: 7 }]);
    expect(bad).toMatchObject({ code: "DATA_INVALID", where: expect.stringMatching(/:1 schemaVersion$/) });
    expect(bad!.what).toMatch(/schemaVersion 7.*version 1/);
    const { schemaVersion: _, ...without } = sample("a");
    expect((await faultsOf([without]))[0]!.what).toMatch(/no schemaVersion/);
  });

  test("a second record of one id names the line of the first", async () => {
    const bad = await faultsOf([sample("a"), sample("b"), sample("a")]);
    expect(bad).toHaveLength(1);
    expect(bad[0]).toMatchObject({ code: "DATA_DUPLICATE_ID", where: expect.stringMatching(/:3 id$/) });
    expect(bad[0]!.what).toContain("line 1");
  });

  test("the id of a bad record is free for a good one", async () => {
    const bad = await faultsOf([{ ...sample("a"), steps: "none" }, sample("a")]);
    expect(bad.map((error) => error.code)).toEqual(["DATA_INVALID"]);
  });

  test("a label outside the log, a gap in the indexes and an empty log are refused with their path", async () => {
    const good = sample("a");
    const bad = await faultsOf([
      { ...good, labels: [good.labels[0], { agent: "Solver", step: 2, source: "human" }] },
      { ...good, labels: [{ agent: "Solver", step: -1, source: "human" }] },
      { ...good, steps: [good.steps[0], { ...good.steps[1], index: 2 }] },
      { ...good, steps: [], labels: [] },
    ]);
    expect(bad.map((error) => [error.code, error.where!.replace(/^.*jsonl:/, "")])).toEqual([
      ["LABEL_OUTSIDE", "1 labels[1].step"],
      ["LABEL_OUTSIDE", "2 labels[0].step"],
      ["DATA_INVALID", "3 steps[1].index"],
      ["DATA_INVALID", "4 steps"],
    ]);
  });

  test("every fault of a record is listed with its JSON path", async () => {
    const good = sample("a");
    const file = await fileOf("many.jsonl", [
      { ...good, system: 3, steps: [{ ...good.steps[0], agent: "", content: 1 }] },
      { ...good, steps: [{ ...good.steps[0], mood: "bad" }, good.steps[1]] },
    ]);
    const { faults, records, badRecords } = await validateFile(file, "tracertraj");
    expect({ records, badRecords }).toEqual({ records: 0, badRecords: 2 });
    expect(faults.map(({ where, path }) => [where, path]).sort()).toEqual([
      [`${file}:1`, "steps[0].agent"],
      [`${file}:1`, "steps[0].content"],
      [`${file}:1`, "system"],
      [`${file}:2`, "steps[0]"],
    ]);
  });

  test("facts about good records are reported beside them", async () => {
    const good = sample("a");
    const odd = { ...good, id: "b", labels: [{ agent: "Checker", step: 0, source: "human" }] };
    const { records, faults, inconsistencies } = await validateFile(await fileOf("odd.jsonl", [good, odd]));
    expect({ records, faults }).toEqual({ records: 2, faults: [] });
    expect(inconsistencies).toMatchObject([{ kind: "label-not-speaker", id: "b", path: "labels[0].agent" }]);
  });

  test("top-level fields of other tools go to extra, without loss, and are written back where they stood", async () => {
    const foreign = { ...sample("a"), rating: { stars: 3 }, "odd key": null, extra: { own: 1 } };
    const source = await fileOf("foreign.jsonl", [foreign]);
    const losses: unknown[] = [];
    const { read } = await readAll(format, source, { onLoss: (loss) => losses.push(loss) });
    expect(read[0]!.extra).toEqual({ own: 1, rating: { stars: 3 }, "odd key": null });
    expect(losses).toEqual([]);
    const target = join(folder, "foreign-back.jsonl");
    await format.write(read, target);
    expect(JSON.parse(await readFile(target, "utf8"))).toEqual(foreign);
    expect((await readAll(format, target)).read).toEqual(read);
  });

  test("a field both at the top level and in extra is refused: one would be lost", async () => {
    const [bad] = await faultsOf([{ ...sample("a"), rating: 1, extra: { rating: 2 } }]);
    expect(bad).toMatchObject({ code: "DATA_INVALID", where: expect.stringMatching(/:1 rating$/) });
  });
});
