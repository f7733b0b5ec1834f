import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { parseCsv } from "../report/parse-csv.ts";
import { type EvalServer, startEvalServer } from "./eval-server.ts";
import { cli, freshPath } from "./run-cli.ts";

const RUNS = [
  "all-at-once_big_algorithm-generated",
  "all-at-once_big_hand-crafted",
  "all-at-once_small_algorithm-generated",
  "all-at-once_small_hand-crafted",
  "floor-constant-step_algorithm-generated",
  "floor-constant-step_hand-crafted",
];
let server: EvalServer;
afterEach(() => server.close());

/** Two methods, two models, two halves of three logs each. */
function matrixFile(url: string, more = ""): string {
  const file = freshPath("matrix.yaml");
  const model = (name: string) =>
    `  - { provider: openai-compatible, baseUrl: "${url}", model: ${name}, stream: false, retries: { attempts: 1 }, prices: { prompt: 1, completion: 10 } }\n`;
  writeFileSync(
    file,
    `methods: [{ method: all-at-once }, { method: floor-constant-step, options: { step: 1 } }]\nmodels:\n${model("big")}${model("small")}subsets: [algorithm-generated, hand-crafted]\nlimit: 3\nconcurrency: 1\n${more}`,
  );
  return file;
}
const answer = (model: string) => `{"agent": "WebSurfer", "step": ${model === "big" ? 1 : 4}}`;
const files = (out: string) => readdirSync(out).sort();
const predictionsOf = (out: string, run: string) => readFileSync(join(out, run, "predictions.jsonl"), "utf8");

describe("a matrix of evaluations", () => {
  it("plans the sum over all runs and does nothing", async () => {
    server = await startEvalServer(answer);
    const out = freshPath("matrix");
    const { code, stdout } = await cli([
      "eval",
      "run",
      "--config",
      matrixFile(server.url),
      "--out",
      out,
      "--dry-run",
      "--json",
    ]);
    expect(code).toBe(0);
    const plan = JSON.parse(stdout);
    expect(plan.runs.map(({ name }: { name: string }) => name)).toEqual(RUNS);
    expect(plan).toMatchObject({ predictions: 18, calls: { low: 12, expected: 12, high: 12 } });
    const tokens = plan.promptTokens.expected + 10 * plan.completionTokens.expected;
    expect(plan.cost.expected).toBeCloseTo(tokens / 1e6, 12);
    expect(existsSync(out)).toBe(false);
    expect(server.asked.size).toBe(0);
  });

  it("runs each in its own folder, compares all, and does nothing again when run again", async () => {
    server = await startEvalServer(answer);
    const out = freshPath("matrix");
    const args = ["eval", "run", "--config", matrixFile(server.url), "--out", out];
    const first = await cli(args);
    expect(first.code).toBe(0);
    expect(files(out)).toEqual(
      [...RUNS, "comparison.csv", "comparison.html", "comparison.json", "comparison.md"].sort(),
    );
    expect(first.stderr).toContain("run 6 of 6: floor-constant-step_hand-crafted");
    for (const run of RUNS) {
      const manifest = JSON.parse(readFileSync(join(out, run, "manifest.json"), "utf8"));
      expect(Object.keys(manifest.inputs)).toEqual([
        run.endsWith("hand-crafted") ? "data/Hand-Crafted" : "data/Algorithm-Generated",
      ]);
      expect(predictionsOf(out, run).trim().split("\n")).toHaveLength(3);
      expect(existsSync(join(out, run, "report.html"))).toBe(true);
    }
    const measured = parseCsv(readFileSync(join(out, "comparison.csv"), "utf8")).filter(
      ({ kind }) => kind === "measured",
    );
    expect(measured.map(({ group, name }) => `${group}: ${name}`).sort()).toEqual(
      RUNS.map((run) => `${run.endsWith("hand-crafted") ? "Hand-Crafted" : "Algorithm-Generated"}: ${run}`).sort(),
    );
    // 3 calls of 10 + 2 tokens at 1 and 10 a million.
    expect(Number(measured[0]!.money)).toBeCloseTo((3 * (10 + 20)) / 1e6, 15);
    expect(Object.fromEntries(server.asked)).toEqual({ big: 6, small: 6 });

    const before = Object.fromEntries(
      files(out)
        .filter((name) => name.startsWith("comparison"))
        .map((name) => [name, readFileSync(join(out, name), "utf8")]),
    );
    expect((await cli(args)).code).toBe(0);
    expect(Object.fromEntries(server.asked)).toEqual({ big: 6, small: 6 });
    for (const [name, content] of Object.entries(before))
      expect(readFileSync(join(out, name), "utf8"), name).toBe(content);
  });

  it("shares its cap over all runs, compares what is there, and goes on to the same result", async () => {
    server = await startEvalServer(answer);
    const whole = freshPath("whole");
    expect((await cli(["eval", "run", "--config", matrixFile(server.url), "--out", whole])).code).toBe(0);
    await server.close();

    server = await startEvalServer(answer);
    const out = freshPath("capped");
    const file = matrixFile(server.url);
    const capped = await cli(["eval", "run", "--config", file, "--out", out, "--max-calls", "4"]);
    expect(capped.code).toBe(3);
    expect(capped.stderr).toContain("error BUDGET_REACHED");
    expect(Object.fromEntries(server.asked)).toEqual({ big: 4 });
    // The run that met the cap has one of three; those after it were not begun.
    expect(capped.stdout).toContain("note: all-at-once_big_hand-crafted: 1 of 3 predictions");
    expect(existsSync(join(out, RUNS[2]!))).toBe(false);

    expect((await cli(["eval", "run", "--config", file, "--out", out])).code).toBe(0);
    expect(Object.fromEntries(server.asked)).toEqual({ big: 6, small: 6 });
    for (const run of RUNS) {
      const answers = (folder: string) =>
        predictionsOf(folder, run)
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line))
          .map(({ itemId, agent, step }) => ({ itemId, agent, step }));
      expect(answers(out)).toEqual(answers(whole));
    }
  });

  it("goes past a model that nobody serves, and ends with its error", async () => {
    server = await startEvalServer(answer);
    const out = freshPath("half");
    const file = matrixFile(server.url);
    const broken = readFileSync(file, "utf8").replace(
      `"${server.url}", model: big`,
      '"http://127.0.0.1:9/v1", model: big',
    );
    writeFileSync(file, broken);
    const { code, stderr, stdout } = await cli(["eval", "run", "--config", file, "--out", out]);
    expect(code).toBe(1);
    expect(stderr).toContain("error MODEL_UNREACHABLE");
    expect(Object.fromEntries(server.asked)).toEqual({ small: 6 });
    expect(stdout).toContain("0 of 3 predictions");
  });

  it("says what is wrong with a matrix before anything is asked", async () => {
    server = await startEvalServer(answer);
    const out = freshPath("wrong");
    const twice = await cli(["eval", "run", "--config", matrixFile(server.url, "method: all-at-once\n"), "--out", out]);
    expect(twice.code).toBe(2);
    expect(twice.stderr).toContain("method and methods are both given");
    const file = matrixFile(server.url);
    writeFileSync(file, "methods: [{ method: floor-last-step }, { method: all-at-once }]\n");
    const keyless = await cli(["eval", "run", "--config", file, "--out", out]);
    expect(keyless.code).toBe(2);
    expect(keyless.stderr).toContain("asks a model and none is configured");
    expect(existsSync(out)).toBe(false);
  });

  it("says how many calls failed so far", async () => {
    let n = 0;
    server = await startEvalServer(() => (++n % 2 === 0 ? "no idea" : '{"agent": "WebSurfer", "step": 1}'));
    const { stderr, stdout } = await cli([
      "eval",
      "run",
      "--config",
      matrixFile(server.url),
      "--out",
      freshPath("failing"),
    ]);
    expect(stderr).toMatch(/all-at-once: 3\/3 done in .* 1 without an answer/u);
    expect(stdout).toContain("33.33 n=3");
  });
});
