import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { cli, freshPath, startCli } from "../cli/run-cli.ts";
import { bytesIn, digest, KILL_SEED, killRepeatedly } from "./killed-runs.ts";

const synthArgs = (out: string): string[] => [
  ...["synth", "run", "--out", out, "--tasks.set", "chain", "--tasks.limit", "60", "--model.regime", "systematic"],
  ...["--model.hard-rate", "0.5", "--model.noise", "0.02", "--search.strategies", "exhaustive", "paper"],
];

const JOURNALS = ["recordings.jsonl", "searches.jsonl", "truth.jsonl", "injections.jsonl"];

describe("synth run", () => {
  it("ends with the same files after SIGKILL at random moments", async () => {
    console.log(`kill-resume seed ${KILL_SEED}`);
    const undisturbed = freshPath("undisturbed");
    expect((await cli(synthArgs(undisturbed))).code).toBe(0);

    const killed = freshPath("killed");
    const kills = await killRepeatedly({
      args: synthArgs(killed),
      times: 5,
      done: () => bytesIn(killed, JOURNALS),
      total: bytesIn(undisturbed, JOURNALS),
    });
    expect(kills).toBeGreaterThan(0);
    const resumed = await cli(synthArgs(killed));
    expect({ code: resumed.code, stderr: resumed.code === 0 ? "" : resumed.stderr }).toEqual({ code: 0, stderr: "" });
    // manifest.json has the time of the start, the ledger that of every unit.
    const moving = ["manifest.json", "ledger.sqlite"];
    expect(digest(killed, moving)).toEqual(digest(undisturbed, moving));
  });

  it("drains and saves at Ctrl-C with exit code 130, and goes on", async () => {
    const out = freshPath("interrupted");
    const run = startCli(synthArgs(out));
    await run.seen("search for t*");
    run.child.kill("SIGINT");
    const { code, stderr } = await run.finished;
    expect(code).toBe(130);
    expect(stderr).toContain("stopping: saving what is done");
    expect(stderr).toContain("error INTERRUPTED");
    expect(existsSync(join(out, "lock"))).toBe(false);
    const again = await cli(synthArgs(out));
    expect(again.code).toBe(0);
    expect(again.stderr).toContain("going on at");
  });

  it("stops at a cap on live calls with exit code 3, keeps what is done, and goes on", async () => {
    const out = freshPath("capped");
    const capped = await cli([...synthArgs(out), "--max-calls", "3000"]);
    expect(capped.code).toBe(3);
    expect(capped.stderr).toContain("error BUDGET_REACHED");
    const done = bytesIn(out, JOURNALS);
    expect(done).toBeGreaterThan(0);
    const whole = await cli(synthArgs(out));
    expect(whole.code).toBe(0);
    expect(bytesIn(out, JOURNALS)).toBeGreaterThan(done);
  });

  it("refuses a run folder of another version, of other settings, and one with a damaged record", async () => {
    const out = freshPath("damaged");
    expect((await cli(synthArgs(out))).code).toBe(0);
    const other = await cli([...synthArgs(out), "--seed", "7"]);
    expect([other.code, other.stderr.includes("seed was 1, now 7")]).toEqual([2, true]);
    const journal = join(out, "recordings.jsonl");
    const lines = readFileSync(journal, "utf8").split("\n");
    writeFileSync(journal, [lines[0], "{half", ...lines.slice(1)].join("\n"));
    const damaged = await cli(synthArgs(out));
    expect(damaged.code).toBe(1);
    expect(damaged.stderr).toContain(`${journal}:2`);
    const manifest = join(out, "manifest.json");
    writeFileSync(manifest, readFileSync(manifest, "utf8").replace('"runFolderVersion": 1', '"runFolderVersion": 2'));
    const version = await cli(synthArgs(out));
    expect([version.code, version.stderr.includes("RUN_VERSION")]).toEqual([2, true]);
  });
});

describe("train run", () => {
  const trainArgs = (out: string, data: string): string[] => [
    ...[
      "train",
      "run",
      "--data",
      data,
      "--out",
      out,
      "--steps",
      "8",
      "--learning-rate",
      "3e-4",
      "--prompts-per-step",
      "8",
    ],
    ...["--eval-every", "3", "--checkpoint-every", "2", "--held-out-share", "0.3"],
  ];

  it("ends with the same metrics and checkpoints, bit for bit, after SIGKILL at random moments", async () => {
    console.log(`kill-resume seed ${KILL_SEED}`);
    const data = freshPath("data");
    expect((await cli(synthArgs(data))).code).toBe(0);
    const dataset = join(data, "dataset");
    const undisturbed = freshPath("undisturbed");
    expect(await cli(trainArgs(undisturbed, dataset))).toMatchObject({ code: 0 });

    const killed = freshPath("killed");
    const kills = await killRepeatedly({
      args: trainArgs(killed, dataset),
      times: 4,
      done: () => bytesIn(killed, ["metrics.jsonl"]),
      total: bytesIn(undisturbed, ["metrics.jsonl"]),
    });
    expect(kills).toBeGreaterThan(0);
    expect(await cli(trainArgs(killed, dataset))).toMatchObject({ code: 0 });
    // These hold wall-clock, and how often the run was begun.
    const moving = ["manifest.json", "timings.jsonl", "events.jsonl"];
    expect(digest(killed, moving)).toEqual(digest(undisturbed, moving));
  });

  it("saves at Ctrl-C with exit code 130, goes on, and refuses other data", async () => {
    const data = freshPath("data");
    expect((await cli(synthArgs(data))).code).toBe(0);
    const dataset = join(data, "dataset");
    const out = freshPath("interrupted");
    const run = startCli(trainArgs(out, dataset));
    await run.seen("ratio at unchanged weights");
    run.child.kill("SIGINT");
    expect((await run.finished).code).toBe(130);
    const other = await cli(trainArgs(out, join(dataset, "test.jsonl")));
    expect([other.code, other.stderr.includes("RUN_MISMATCH")]).toEqual([2, true]);
    expect((await cli(trainArgs(out, dataset))).code).toBe(0);
    const evaluation = freshPath("eval");
    const evaluate = (checkpoint: string) =>
      cli([
        ...["eval", "run", "--method", "tracer", "--checkpoint", checkpoint, "--with-reference"],
        ...["--data.files", join(dataset, "test.jsonl"), "--out", evaluation],
      ]);
    const absent = await evaluate(join(out, "nothing-here"));
    expect([absent.code, absent.stderr.includes("FILE_MISSING"), existsSync(evaluation)]).toEqual([2, true, false]);
    const current = freshPath("current");
    cpSync(join(out, "checkpoints", "step-000008"), current, { recursive: true });
    expect((await evaluate(current)).stdout).toContain("strict: step");
    // Predictions of other weights never go on in the same folder, though the path is the same.
    rmSync(current, { recursive: true });
    cpSync(join(out, "checkpoints", "step-000006"), current, { recursive: true });
    const otherWeights = await evaluate(current);
    expect([otherWeights.code, otherWeights.stderr.includes("inputs.checkpoint was")]).toEqual([2, true]);
  });
});
