import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadTrajectoryFiles, loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import { writeJsonLines } from "../../src/formats/jsonl.ts";
import { shippedPath } from "../../src/package-root.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { run } from "./items.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rootstep-datasets-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function file(name: string, trajectories: readonly Trajectory[]): Promise<string> {
  await writeJsonLines(join(folder, name), trajectories);
  return join(folder, name);
}
const { trajectory } = run("a", ["A", "B"], 1);

describe("loadTrajectoryFiles", () => {
  it("takes labelled runs from several files, their task source as the column", async () => {
    const first = await file("one.jsonl", [trajectory]);
    const second = await file("two.jsonl.gz", [run("b", ["A"], 0).trajectory]);
    const { items, problems } = await loadTrajectoryFiles([first, second]);
    expect(items.map((item) => [item.id, item.label.step, item.subset, item.groupId])).toEqual([
      ["a", 1, "made-up", "a"],
      ["b", 0, "made-up", "b"],
    ]);
    expect(problems).toEqual([]);
  });

  it("reports runs without a settled label, and takes the first settled one of several", async () => {
    const [label] = trajectory.labels;
    const undecided = { ...label!, step: 0, agent: "A", verdict: "undecided" as const };
    const path = await file("labels.jsonl", [
      { ...trajectory, id: "none", labels: [] },
      { ...trajectory, id: "undecided", labels: [undecided] },
      { ...trajectory, id: "both", labels: [undecided, { ...label!, verdict: "earliest-confirmed" }] },
    ]);
    const { items, problems } = await loadTrajectoryFiles([path]);
    expect(items.map((item) => [item.id, item.label.step])).toEqual([["both", 1]]);
    expect(problems.map(({ kind, dropped, where }) => [kind, dropped, where])).toEqual([
      ["no-label", true, `${path}:1`],
      ["no-label", true, `${path}:2`],
    ]);
  });

  it("reports labels outside their log, by line, and goes on", async () => {
    const outside = { ...trajectory, id: "outside", labels: [{ ...trajectory.labels[0]!, step: 2 }] };
    const path = await file("outside.jsonl", [trajectory, outside, { ...trajectory, id: "c" }]);
    const { items, problems } = await loadTrajectoryFiles([path]);
    expect(items.map((item) => item.id)).toEqual(["a", "c"]);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({ kind: "label-outside", dropped: true });
    expect(problems[0]!.where).toContain(`${path}:2`);
  });

  it("refuses one id in two files, naming both", async () => {
    const first = await file("x.jsonl", [trajectory]);
    const second = await file("y.jsonl", [trajectory]);
    await expect(loadTrajectoryFiles([first, second])).rejects.toMatchObject({
      code: "DATA_DUPLICATE_ID",
      where: `${second}:1`,
      what: expect.stringContaining(`${first}:1`),
    });
  });

  it("ends at a bad record, or reports it where told to go on", async () => {
    const path = await file("bad.jsonl", [trajectory, { ...trajectory, id: "c" }]);
    const [good, other] = (await readFile(path, "utf8")).split("\n");
    await writeFile(path, `${good}\n{"id": 3}\n${other}\n`);
    await expect(loadTrajectoryFiles([path])).rejects.toMatchObject({ code: "DATA_INVALID" });
    const { items, problems } = await loadTrajectoryFiles([path], { skipBad: true });
    expect(items.map((item) => item.id)).toEqual(["a", "c"]);
    expect(problems).toMatchObject([{ kind: "bad-record", dropped: true }]);
  });

  it("names the setting of an evaluation in what to do about a bad record", async () => {
    const path = await file("hint.jsonl", [trajectory]);
    await writeFile(path, `${await readFile(path, "utf8")}{"schemaVersion": 1, "id": 3}\n`);
    await expect(loadTrajectoryFiles([path])).rejects.toMatchObject({
      hint: expect.stringContaining("--data.skip-bad"),
    });
  });
});

describe("loadWhoAndWhen", () => {
  it("reads a folder laid out like the release", async () => {
    const dir = join(folder, "ww");
    for (const name of ["1.json", "14.json"]) {
      await cp(
        shippedPath("data", "who_and_when", "Algorithm-Generated", name),
        join(dir, "Algorithm-Generated", name),
      );
    }
    const { items, problems, name } = await loadWhoAndWhen({ dir, clean: true });
    expect(name).toBe("Who&When all (clean)");
    expect(items.map((item) => item.id)).toEqual(["algorithm-generated/1"]);
    expect(problems).toMatchObject([{ kind: "label-not-speaker", dropped: true }]);
  });

  it("counts a copied file once and says so; one history under two labels stays two logs", async () => {
    const dir = join(folder, "copies");
    const original = (name: string): string => shippedPath("data", "who_and_when", "Algorithm-Generated", name);
    const put = (from: string, to: string) => cp(original(from), join(dir, "Algorithm-Generated", to));
    await put("1.json", "1.json");
    await put("1.json", "99.json");
    const other: object = JSON.parse(await readFile(original("1.json"), "utf8"));
    await writeFile(join(dir, "Algorithm-Generated", "2.json"), JSON.stringify({ ...other, mistake_step: "1" }));
    const { items, problems } = await loadWhoAndWhen({ dir });
    expect(items.map((item) => item.id)).toEqual([1, 2].map((n) => `algorithm-generated/${n}`));
    expect(problems.filter(({ dropped }) => dropped)).toEqual([
      {
        kind: "duplicate",
        dropped: true,
        where: join(dir, "Algorithm-Generated", "99.json"),
        message: "algorithm-generated/99 is the same log with the same label as algorithm-generated/1",
      },
    ]);
  });

  it("says so when the folder is missing", async () => {
    await expect(loadWhoAndWhen({ dir: join(folder, "nowhere") })).rejects.toMatchObject({ code: "FILE_MISSING" });
  });
});
