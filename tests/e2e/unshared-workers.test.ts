import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { z } from "zod";
import { shippedPath } from "../../src/package-root.ts";
import { cli } from "../cli/run-cli.ts";
import { describeWithRedis, type RedisServer, startRedis } from "../redis-server.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { digest } from "./killed-runs.ts";

const MOVING = ["manifest.json", "ledger.sqlite"];

interface Worker {
  readonly child: ChildProcess;
  /** The only folder it can write to, and that no other process uses. */
  readonly own: string;
  readonly output: () => string;
  /** Ctrl-C for the worker itself: bubblewrap, its parent, passes no signals on. */
  interrupt(): void;
}

/**
 * A worker as on another host: bubblewrap hides the folder in which the run, the user's copy of the tasks and the predictions
 * lie, makes everything else read-only, and gives it a home and a temporary folder of its own. Only the network is shared.
 */
function startWorkerElsewhere(redis: string, hidden: string): Worker {
  const own = temporaryFolder("elsewhere");
  const [home, temporary] = [join(own, "home"), join(own, "tmp")];
  mkdirSync(home);
  mkdirSync(temporary);
  const confinement = [
    ...["--ro-bind", "/", "/", "--dev", "/dev", "--bind", "/proc", "/proc", "--die-with-parent"],
    ...["--tmpfs", hidden, "--bind", own, own, "--chdir", own],
  ];
  const rootstep = [process.execPath, shippedPath("dist", "src", "cli", "bin.js")];
  const flags = ["worker", "--redis", redis, "--concurrency", "2", "--lease", "2", "--grace", "0"];
  const child = spawn("bwrap", [...confinement, "--", ...rootstep, ...flags], {
    env: { PATH: process.env.PATH, HOME: home, TMPDIR: temporary },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (part: Buffer) => {
      output += part;
    });
  }
  return {
    child,
    own,
    output: () => output,
    interrupt: () => process.kill(Number(/^worker .*-(\d+)-[0-9a-f]{8} is ready/mu.exec(output)?.[1]), "SIGINT"),
  };
}

/** A copy of shipped problems in MATH's layout under other ids: tasks that no installation has. */
function writeOwnCopy(file: string, problems: number): string[] {
  const shipped = readFileSync(shippedPath("data", "math", "problems.jsonl"), "utf8")
    .trim()
    .split("\n");
  const records = shipped
    .map((line) => z.looseObject({ calculations: z.array(z.string()).optional() }).parse(JSON.parse(line)))
    .filter(({ calculations }) => calculations !== undefined)
    .slice(0, problems)
    .map((record, number) => ({ ...record, id: `mine-${number}` }));
  writeFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(""));
  return records.map(({ id }) => `math-${id}`);
}

const prediction = (itemId: string) => ({
  ...{ itemId, epoch: 0, method: "all-at-once", agent: null, step: 1 },
  ...{ evidence: [], parsePath: "json", calls: 1, latencyMs: 1 },
});

const statusSchema = z.object({
  stages: z.array(z.object({ total: z.number() })),
  workers: z.array(z.object({ done: z.number() })),
});

describeWithRedis("workers that share no folder with the coordinator or with each other", () => {
  let redis: RedisServer;
  const workers: Worker[] = [];

  beforeEach(async () => {
    redis = await startRedis();
  });
  afterEach(async () => {
    for (const { child } of workers.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = once(child, "close");
      child.kill("SIGKILL");
      await gone;
    }
    await redis.stop();
  });

  it.each([
    ["shipped tasks", (_: string) => ["--tasks.set", "chain", "--tasks.limit", "12"]],
    [
      "tasks of the user's own copy and a file of predictions, which only the coordinator has",
      (folder: string) => {
        const [first = ""] = writeOwnCopy(join(folder, "copy.jsonl"), 12);
        // About one run alone: what the file says of the others, nothing, is also not the workers' to find out.
        writeFileSync(join(folder, "predictions.jsonl"), `${JSON.stringify(prediction(first))}\n`);
        const tasks = ["--tasks.set", "math-chains", "--tasks.path", join(folder, "copy.jsonl"), "--tasks.limit", "12"];
        return [...tasks, "--search.prior", join(folder, "predictions.jsonl")];
      },
    ],
    [
      "code that is tested in a sandbox",
      (_: string) => ["--tasks.set", "mbppplus", "--tasks.limit", "2", "--system", "coder-tester"],
    ],
  ])("write the files that one process writes: %s", async (_, tasksIn) => {
    const folder = temporaryFolder("coordinator");
    const simulator = ["--model.regime", "systematic", "--model.hard-rate", "0.5", "--model.noise", "0.02"];
    const args = (out: string): string[] => [
      "synth",
      "run",
      "--out",
      join(folder, out),
      ...tasksIn(folder),
      ...simulator,
    ];
    const alone = await cli(args("alone"));
    expect(alone, alone.stderr).toMatchObject({ code: 0 });

    workers.push(startWorkerElsewhere(redis.url, folder), startWorkerElsewhere(redis.url, folder));
    const run = await cli([...args("shared"), "--redis", redis.url]);
    expect(run, run.stderr + workers.map(({ output }) => output()).join("")).toMatchObject({ code: 0 });
    expect(digest(join(folder, "shared"), MOVING)).toEqual(digest(join(folder, "alone"), MOVING));

    const status = statusSchema.parse(
      JSON.parse((await cli(["synth", "status", join(folder, "shared"), "--json"])).stdout),
    );
    const units = status.stages.reduce((sum, { total }) => sum + total, 0);
    expect(units).toBeGreaterThan(2);
    expect(status.workers.reduce((sum, { done }) => sum + done, 0)).toBe(units);
    for (const { child, own, interrupt } of workers) {
      const gone = once(child, "close");
      interrupt();
      await gone;
      expect(child.exitCode).toBe(130);
      expect(readdirSync(own, { recursive: true }).sort()).toEqual(["home", "tmp"]); // nothing is left lying about
    }
  });
});
