import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { shippedPath } from "../../src/package-root.ts";
import { parseCsv } from "../report/parse-csv.ts";
import { cli, freshPath } from "./run-cli.ts";

/** A run of a floor method, made on the spot. */
async function floorRun(name: string, args: readonly string[]): Promise<string> {
  const out = freshPath(name);
  const { code, stderr } = await cli(["eval", "run", "--out", out, ...args]);
  expect(code, stderr).toBe(0);
  return out;
}
const constant = (step: number, more: readonly string[] = []): Promise<string> =>
  floorRun(`always-${step}`, ["--method", "floor-constant-step", "--options", `{step: ${step}}`, ...more]);

/** Who&When's Hand-Crafted half in a folder of its own. */
function copyOfData(): string {
  const folder = freshPath("data");
  cpSync(shippedPath("data", "who_and_when", "Hand-Crafted"), join(folder, "Hand-Crafted"), { recursive: true });
  return folder;
}
function edit(file: string, change: (text: string) => string): void {
  writeFileSync(file, change(readFileSync(file, "utf8")));
}

describe("eval compare", () => {
  it("prints one table of runs, floors and published results, and writes it in four forms", async () => {
    const runs = [await constant(1), await constant(4)];
    const out = freshPath("comparison");
    const { code, stdout } = await cli(["eval", "compare", ...runs, "--out", out]);
    expect(code).toBe(0);
    expect(readdirSync(out).sort()).toEqual(["comparison.csv", "comparison.html", "comparison.json", "comparison.md"]);
    for (const text of [
      "26.98 n=126",
      "floor: constant-step",
      "published: ",
      "difference to always-1",
      "all logs: percent",
    ]) {
      expect(stdout).toContain(text);
    }
    const csv = parseCsv(readFileSync(join(out, "comparison.csv"), "utf8"));
    const json = JSON.parse(readFileSync(join(out, "comparison.json"), "utf8"));
    expect(csv).toHaveLength(json.groups.reduce((sum: number, { rows }: { rows: unknown[] }) => sum + rows.length, 0));
    const printed = await cli(["eval", "compare", ...runs, "--json"]);
    expect(JSON.parse(printed.stdout)).toEqual(json);
    // 34 and 11 of 126 labels name steps 1 and 4 (counted in the files): no log has both, so 34:11 without ties.
    const four = csv.find(({ group, name }) => group === "Algorithm-Generated" && name === "always-4")!;
    expect([four.vs_baseline_step_only_here, four.vs_baseline_step_only_baseline]).toEqual(["11", "34"]);
  });

  it("takes a matrix's folder, a baseline by name or path, and leaves published results out when told", async () => {
    const folder = freshPath("two");
    for (const step of [1, 4]) cpSync(await constant(step), join(folder, `always-${step}`), { recursive: true });
    for (const baseline of ["always-4", join(folder, "always-4")]) {
      const { stdout } = await cli(["eval", "compare", folder, "--baseline", baseline, "--no-references"]);
      expect(stdout).toContain("difference to always-4");
      expect(stdout).not.toContain("published: ");
    }
    const wrong = await cli(["eval", "compare", folder, "--baseline", "always-9"]);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain("always-1, always-4");
    expect((await cli(["eval", "compare", "/no/such/run"])).stderr).toContain("error FILE_MISSING");
  });

  it("pairs on the logs that both runs have", async () => {
    const half = await constant(4, ["--data.subset", "hand-crafted", "--limit", "20"]);
    const { stdout } = await cli(["eval", "compare", await constant(1), half, "--json"]);
    const group = JSON.parse(stdout).groups.find(({ name }: { name: string }) => name === "Hand-Crafted");
    const row = group.rows.find(({ name }: { name: string }) => name === "always-4");
    expect(row.paired.step.pairs).toBe(20);
    expect(row.cells.step.n).toBe(20);
  });
});

describe("eval score on data that is not the run's", () => {
  it("refuses it naming both checksums, and marks the result where forced", async () => {
    const data = copyOfData();
    const run = await constant(4, ["--data.folder", data, "--data.subset", "hand-crafted"]);
    const before = JSON.parse(readFileSync(join(run, "manifest.json"), "utf8")).inputs["data/Hand-Crafted"];
    expect((await cli(["eval", "score", run])).code).toBe(0);
    edit(join(data, "Hand-Crafted", "1.json"), (text) => text.replace(/"mistake_step": "\d+"/u, '"mistake_step": "4"'));
    const refused = await cli(["eval", "score", run]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("error DATA_VERSION");
    expect(refused.stderr).toMatch(new RegExp(`data/Hand-Crafted was ${before}, is [0-9a-f]{64}`, "u"));
    expect((await cli(["eval", "compare", run])).stderr).toContain("error DATA_VERSION");

    const forced = await cli(["eval", "score", run, "--force"]);
    expect(forced.code).toBe(0);
    expect(forced.stdout).toContain("MARKED: data differs from the run's (--force)");
    expect(JSON.parse(readFileSync(join(run, "scores.json"), "utf8")).marks[0]).toContain(before);
    expect(readFileSync(join(run, "report.html"), "utf8")).toContain("data differs from the run");
    expect((await cli(["eval", "compare", run, "--force"])).stdout).toContain("data differs from the run's");
    // The run itself does not go on with other data.
    const resumed = await cli([
      "eval",
      "run",
      "--method",
      "floor-constant-step",
      "--options",
      "{step: 4}",
      "--data.folder",
      data,
      "--data.subset",
      "hand-crafted",
      "--out",
      run,
    ]);
    expect(resumed.code).toBe(2);
    expect(resumed.stderr).toContain("inputs.data/Hand-Crafted was");
  });

  it("finds the same data at another place", async () => {
    const run = await constant(4, ["--data.folder", copyOfData(), "--data.subset", "hand-crafted"]);
    const moved = await cli(["eval", "score", run, "--data", shippedPath("data", "who_and_when")]);
    expect(moved.code).toBe(0);
    expect(moved.stdout).not.toContain("MARKED");
  });
});

describe("eval score of a predictions file that was touched", () => {
  it("says n of N for a file with lines missing, everywhere", async () => {
    const run = await constant(1, ["--data.subset", "algorithm-generated"]);
    edit(join(run, "predictions.jsonl"), (text) => text.split("\n").slice(26).join("\n"));
    const { code, stdout } = await cli(["eval", "score", run]);
    expect(code).toBe(0);
    expect(stdout).toContain("100 of 126 predictions: unfinished, 26 are missing and not counted");
    expect(stdout).toContain("MARKED: predictions.jsonl was changed after the run wrote it");
    expect(JSON.parse(readFileSync(join(run, "scores.json"), "utf8")).scores).toMatchObject({
      planned: 126,
      missing: 26,
    });
    const out = freshPath("comparison");
    const compared = await cli(["eval", "compare", run, "--out", out]);
    for (const text of [
      compared.stdout,
      ...["md", "html"].map((form) => readFileSync(join(out, `comparison.${form}`), "utf8")),
    ]) {
      expect(text).toContain("100 of 126");
    }
    const [line] = parseCsv(readFileSync(join(out, "comparison.csv"), "utf8"));
    expect(line).toMatchObject({ predictions: "100", planned: "126" });
    // Run again: the missing ones are made, and nothing is marked any more.
    const again = await cli([
      "eval",
      "run",
      "--method",
      "floor-constant-step",
      "--options",
      "{step: 1}",
      "--data.subset",
      "algorithm-generated",
      "--out",
      run,
    ]);
    expect(again.stdout).toContain("126 of 126 predictions");
    expect(again.stdout).not.toContain("MARKED");
  });

  it("reports unknown ids and counts the later of two lines", async () => {
    const run = await constant(1, ["--data.subset", "algorithm-generated"]);
    edit(join(run, "predictions.jsonl"), (text) => {
      const [first] = text.split("\n");
      const line = JSON.parse(first!);
      const stranger = JSON.stringify({ ...line, itemId: "algorithm-generated/999" });
      const later = JSON.stringify({ ...line, step: 77 });
      return `${text}${stranger}\n${later}\n`;
    });
    const { stdout } = await cli(["eval", "score", run]);
    expect(stdout).toContain(
      "1 predictions are for ids or epochs that the run does not have (algorithm-generated/999): not counted",
    );
    expect(stdout).toContain("1 lines replaced by later ones");
    expect(stdout).toContain("126 of 126 predictions");
  });

  it("names the line of a broken one", async () => {
    const run = await constant(1, ["--data.subset", "algorithm-generated"]);
    edit(join(run, "predictions.jsonl"), (text) => text.replace('"step":1', '"step":"one"'));
    const { code, stderr } = await cli(["eval", "score", run]);
    expect(code).toBe(1);
    expect(stderr).toContain("error RUN_CORRUPT");
    expect(stderr).toContain("predictions.jsonl:1 step");
  });

  it("reads a run that is under way without touching it", async () => {
    const run = await constant(1, ["--data.subset", "algorithm-generated"]);
    const file = join(run, "predictions.jsonl");
    edit(file, (text) => text.slice(0, -20));
    const torn = readFileSync(file, "utf8");
    writeFileSync(join(run, "lock"), String(process.pid));
    const { code, stdout } = await cli(["eval", "score", run]);
    expect(code).toBe(0);
    expect(stdout).toContain("125 of 126 predictions");
    expect(stdout).toContain("the last line of predictions.jsonl has no end");
    expect(readFileSync(file, "utf8")).toBe(torn);
    expect(existsSync(join(run, "lock"))).toBe(true);
  });
});
