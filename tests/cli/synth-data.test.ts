import { existsSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { EXIT } from "../../src/errors.ts";
import { shippedPath } from "../../src/package-root.ts";
import { cli, freshPath } from "./run-cli.ts";

const run = freshPath("run");
const SETTINGS = [
  "--tasks.set",
  "chain",
  "--tasks.limit",
  "20",
  "--model.regime",
  "systematic",
  "--model.noise",
  "0.02",
];
beforeAll(async () => {
  const { code, stdout, stderr } = await cli(["synth", "run", "--out", run, ...SETTINGS]);
  expect(code, stderr).toBe(EXIT.ok);
  expect(stdout).toMatch(/Cost per label, recording and injection included: \d+ calls/u);
}, 180_000);
afterAll(() => rmSync(dirname(run), { recursive: true, force: true }));

it("validates the dataset of a run, exports it for the hub, and refuses to overwrite", async () => {
  const valid = await cli(["data", "validate", join(run, "dataset"), "--json"]);
  expect([valid.code, JSON.parse(valid.stdout).faults]).toEqual([EXIT.ok, []]);
  const out = join(dirname(run), "hub");
  const exported = await cli(["synth", "export", run, "--to", "huggingface", "--out", out]);
  expect(exported.code, exported.stderr).toBe(EXIT.ok);
  expect(existsSync(join(out, "data", "train-00000-of-00001.parquet"))).toBe(true);
  const again = await cli(["synth", "export", run, "--to", "parquet", "--out", out]);
  expect([again.code, again.stderr]).toEqual([EXIT.usage, expect.stringContaining("overwrites nothing")]);
}, 120_000);

it("compares a dataset with Who&When as a table and as JSON", async () => {
  const table = await cli(["data", "stats", "--compare", run, shippedPath("data", "who_and_when")]);
  expect(table.stdout, table.stderr).toMatch(/tells A from B with AUC [01]\.\d{3} \[[01]\.\d{3}, [01]\.\d{3}\]/u);
  const json = await cli(["data", "stats", run, "--json"]);
  expect(JSON.parse(json.stdout)).toMatchObject({ name: run, badRecords: 0 });
  expect((await cli(["data", "stats", "--compare", run])).code).toBe(EXIT.usage);
}, 120_000);

it("plans a run, and does nothing with --dry-run", async () => {
  const plan = await cli(["synth", "plan", ...SETTINGS, "--json"]);
  const out = join(dirname(run), "planned");
  const dry = await cli(["synth", "run", "--out", out, ...SETTINGS, "--dry-run", "--json"]);
  expect(dry.code, dry.stderr).toBe(EXIT.ok);
  expect(JSON.parse(dry.stdout)).toEqual(JSON.parse(plan.stdout));
  expect(existsSync(out)).toBe(false);
  const text = await cli(["synth", "plan", ...SETTINGS]);
  expect(text.stdout).toContain("search: bayes");
  expect(text.stdout).toContain("nothing was run");
}, 120_000);
