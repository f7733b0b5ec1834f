import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type VerlRow, verlParquet } from "../../trainer/verl/parquet.ts";
import { describeWithEngines, engineServers } from "./servers.ts";

const ROWS: readonly VerlRow[] = [0, 1, 2].map((index) => ({
  data_source: "rootstep",
  prompt: [
    { role: "system", content: `Trace it. ${"é".repeat(index)}` },
    { role: "user", content: "line 1\nline 2 \u0000 end" },
  ].slice(0, 1 + (index % 2)),
  ability: "failure-attribution",
  reward_model: { style: "rule", ground_truth: `a | b | ${index}` },
  extra_info: { split: "train", index, id: `run-${index}` },
}));

const READ = [
  "import json, sys",
  "import pyarrow.parquet as pq",
  "table = pq.read_table(sys.argv[1])",
  "print(json.dumps({'schema': {f.name: str(f.type) for f in table.schema}, 'rows': table.to_pylist()}))",
].join("\n");

describeWithEngines("a verl data set read by pyarrow", () => {
  it("has the nested schema and every row as written", () => {
    const folder = mkdtempSync(join(tmpdir(), "rootstep-parquet-"));
    try {
      const file = join(folder, "train.parquet");
      writeFileSync(file, verlParquet(ROWS));
      const { schema, rows } = JSON.parse(
        execFileSync(engineServers().python, ["-c", READ, file], { encoding: "utf8" }),
      );
      expect(rows).toEqual(ROWS);
      expect(schema).toMatchObject({
        prompt: expect.stringMatching(/^list<.*struct<role: string not null, content: string not null>/u),
        reward_model: "struct<style: string not null, ground_truth: string not null>",
        extra_info: "struct<split: string not null, index: int64 not null, id: string not null>",
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
