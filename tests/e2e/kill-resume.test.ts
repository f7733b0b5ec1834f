import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { stream } from "../../src/random.ts";
import { cli, freshPath, startCli } from "../cli/run-cli.ts";

const SEED = Number(process.env.ROOTSTEP_TEST_SEED ?? 1);

const synthArgs = (out: string): string[] => [
  ...["synth", "run", "--out", out, "--tasks.set", "chain", "--tasks.limit", "60", "--model.regime", "systematic"],
  ...["--model.hard-rate", "0.5", "--model.noise", "0.02", "--search.strategies", "exhaustive", "paper"],
];

const FINAL = [
  "dataset/train.jsonl",
  "dataset/test.jsonl",
  "dataset/evidence.jsonl",
  "dataset/README.md",
  "report.json",
];
const JOURNALS = ["recordings.jsonl", "searches.jsonl", "truth.jsonl", "injections.jsonl"];

const digest = (folder: string, names: readonly string[]): string[] =>
  names.map(
    (name) =>
      `${name} ${createHash("sha256")
        .update(readFileSync(join(folder, name)))
        .digest("hex")}`,
  );

/** Bytes of work on disk, in a run folder that may only be half there. */
const written = (folder: string): number =>
  JOURNALS.map((name) => join(folder, name)).reduce(
    (sum, file) => sum + (existsSync(file) ? statSync(file).size : 0),
    0,
  );

/** Waits, without a clock of its own, until that much is on disk or the command has ended. */
async function untilWritten(folder: string, bytes: number, ended: () => boolean): Promise<void> {
  while (!ended() && written(folder) < bytes) await new Promise(setImmediate);
}

describe("synth run", () => {
  it("ends with the same files after SIGKILL at random moments", async () => {
    console.log(`kill-resume seed ${SEED}`);
    const undisturbed = freshPath("undisturbed");
    expect((await cli(synthArgs(undisturbed))).code).toBe(0);
    const total = written(undisturbed);

    const killed = freshPath("killed");
    const random = stream(SEED, "kill points");
    let kills = 0;
    for (const share of Array.from({ length: 5 }, () => random.next()).sort((a, b) => a - b)) {
      const run = startCli(synthArgs(killed));
      let ended = false;
      void run.finished.then(() => {
        ended = true;
      });
      await untilWritten(killed, share * total, () => ended);
      run.child.kill("SIGKILL");
      kills += Number((await run.finished).signal === "SIGKILL");
    }
    expect(kills).toBeGreaterThan(0);
    const resumed = await cli(synthArgs(killed));
    expect({ code: resumed.code, stderr: resumed.code === 0 ? "" : resumed.stderr }).toEqual({ code: 0, stderr: "" });
    expect(digest(killed, [...FINAL, ...JOURNALS])).toEqual(digest(undisturbed, [...FINAL, ...JOURNALS]));
  });

  it("drains and saves at Ctrl-C with exit code 130, and goes on", async () => {
    const out = freshPath("interrupted");
    const run = startCli(synthArgs(out));
    await run.seen("search for t*");
    run.child.kill("SIGINT");
    const { code, stderr } = await run.finished;
    expect(code).toBe(130);
    expect(stderr).toContain("stopping: finishing what is under way");
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
    const done = written(out);
    expect(done).toBeGreaterThan(0);
    const whole = await cli(synthArgs(out));
    expect(whole.code).toBe(0);
    expect(written(out)).toBeGreaterThan(done);
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
