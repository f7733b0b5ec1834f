import { appendFile, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { trainConfigSchema } from "../../trainer/config.ts";
import { buildExamples } from "../../trainer/dataset.ts";
import { type TrainingEvent, type TrainRunOptions, trainRun } from "../../trainer/train-run.ts";
import { createTabularEngine, faultyRun, tabularCodec } from "./tabular-engine.ts";

const { examples } = buildExamples(
  Array.from({ length: 10 }, (_, i) => faultyRun(`run-${i}`, i % 3)),
  tabularCodec,
  { labels: ["injection"], maxPrompt: 1, withReference: true },
);
const settings = {
  steps: 20,
  promptsPerStep: 4,
  groupSize: 4,
  learningRate: 0.05,
  epochsPerBatch: 2,
  deadGroups: "resample",
  checkpointEvery: 5,
  evalEvery: 4,
} as const;
const config = trainConfigSchema.parse(settings);

let root: string;
let undisturbed: ReadonlyMap<string, string>;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "rootstep-resume-"));
  await run("undisturbed");
  undisturbed = await contents("undisturbed");
});
afterAll(() => rm(root, { recursive: true }));

/** A process that trains in a folder: every call begins with an engine at its starting weights. */
function run(folder: string, more: Partial<TrainRunOptions> = {}) {
  const data = { config, engine: createTabularEngine(), examples, heldOut: examples.slice(0, 3) };
  return trainRun({ ...data, folder: join(root, folder), ...more });
}

/** Every file of a run but those with wall-clock in them, as hexadecimal text. */
async function contents(folder: string): Promise<ReadonlyMap<string, string>> {
  const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !["timings.jsonl", "events.jsonl"].includes(entry.name));
  const read = await Promise.all(
    files.map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(join(root, folder).length), (await readFile(path)).toString("hex")] as const;
    }),
  );
  return new Map(read.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Ends the process by an abort once `steps` steps are recorded. */
async function stopAfter(folder: string, steps: number): Promise<void> {
  const controller = new AbortController();
  let done = 0;
  const onMetric = ({ step }: { step: number }) => {
    done = step + 1;
    if (done === steps) controller.abort();
  };
  await expect(run(folder, { signal: controller.signal, onMetric })).rejects.toMatchObject({ code: "INTERRUPTED" });
  expect(done).toBe(steps);
}

/** Kills the process in the middle of a step: after `steps` records, before the next checkpoint. */
async function crashAfter(folder: string, steps: number): Promise<void> {
  const onMetric = ({ step }: { step: number }) => {
    if (step + 1 === steps) throw new Error("killed");
  };
  await expect(run(folder, { onMetric })).rejects.toThrow("killed");
}

describe("a run that was stopped", () => {
  it("leaves the last two checkpoints and the best one", () => {
    const folders = [...undisturbed.keys()].filter((path) => path.endsWith("state.json"));
    expect(folders).toContain("/checkpoints/step-000020/state.json");
    expect(folders).toContain("/checkpoints/step-000015/state.json");
    expect(folders.length).toBeLessThanOrEqual(3);
  });

  for (const steps of [1, 5, 7, 19]) {
    it(`after ${steps} steps by an abort finishes byte for byte like an undisturbed one`, async () => {
      const folder = `abort-${steps}`;
      await stopAfter(folder, steps);
      const events: TrainingEvent[] = [];
      await run(folder, { onEvent: (event) => events.push(event) });
      expect(events[0]).toEqual({ kind: "resumed", stepsDone: steps });
      expect(await contents(folder)).toEqual(undisturbed);
    });
  }

  it("several times finishes byte for byte like an undisturbed one", async () => {
    for (const steps of [2, 3, 9, 13]) await stopAfter("abort-often", steps);
    await run("abort-often");
    expect(await contents("abort-often")).toEqual(undisturbed);
  });

  it("before its first step has a checkpoint of the start", async () => {
    await expect(run("abort-0", { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "INTERRUPTED" });
    expect(await readdir(join(root, "abort-0/checkpoints"))).toEqual(["step-000000"]);
    await run("abort-0");
    expect(await contents("abort-0")).toEqual(undisturbed);
  });
});

describe("a run that crashed", () => {
  it("after records past its last checkpoint, in the middle of a line and of a checkpoint, finishes the same", async () => {
    await crashAfter("crash", 8);
    await appendFile(join(root, "crash/metrics.jsonl"), '{"step":8,"policyVers');
    await appendFile(join(root, "crash/evaluations.jsonl"), '{"stepsDone":12,"n":3}\n{"st');
    await mkdir(join(root, "crash/checkpoints/.writing-step-000009"));
    await writeFile(join(root, "crash/checkpoints/.writing-step-000009/weights.bin"), "half");
    await run("crash");
    expect(await contents("crash")).toEqual(undisturbed);
  });

  it("before its first checkpoint starts afresh", async () => {
    const onEvaluation = () => {
      throw new Error("killed");
    };
    await expect(run("crash-first", { onEvaluation })).rejects.toThrow("killed");
    await run("crash-first");
    expect(await contents("crash-first")).toEqual(undisturbed);
  });

  it("and lost records that its checkpoint counts on is refused", async () => {
    await stopAfter("lost", 6);
    await writeFile(join(root, "lost/metrics.jsonl"), "");
    await expect(run("lost")).rejects.toMatchObject({ code: "RUN_CORRUPT" });
  });
});

describe("a finished run", () => {
  it("is left as it is when it is run again", async () => {
    await run("undisturbed");
    expect(await contents("undisturbed")).toEqual(undisturbed);
  });

  it("is not resumed with other settings, data or another engine; checkpoint settings may change", async () => {
    const other = trainConfigSchema.parse({ ...settings, steps: 30 });
    await expect(run("undisturbed", { config: other })).rejects.toThrow("the settings");
    await expect(run("undisturbed", { examples: examples.slice(1) })).rejects.toThrow("the training data");
    const engine = { ...createTabularEngine(), id: "other" };
    await expect(run("undisturbed", { engine })).rejects.toMatchObject({ code: "RUN_MISMATCH" });
    const operational = trainConfigSchema.parse({ ...settings, keepCheckpoints: 9, checkpointEvery: 7 });
    await expect(run("undisturbed", { config: operational })).resolves.toMatchObject({ step: 20 });
  });
});

describe("a corrupt checkpoint", () => {
  const newest = "checkpoints/step-000020";

  for (const file of ["weights.bin", "optimizer.bin", "state.json"]) {
    it(`(${file}) is reported, set aside, and the one before is taken`, async () => {
      const folder = `corrupt-${file}`;
      await cp(join(root, "undisturbed"), join(root, folder), { recursive: true });
      const path = join(root, folder, newest, file);
      const bytes = await readFile(path);
      const middle = bytes.length >> 1;
      bytes[middle] = bytes[middle]! ^ 1;
      await writeFile(path, bytes);
      const events: TrainingEvent[] = [];
      await run(folder, { onEvent: (event) => events.push(event) });
      expect(events.slice(0, 2)).toMatchObject([
        { kind: "corrupt-checkpoint", error: { code: "CHECKPOINT_CORRUPT" } },
        { kind: "resumed", stepsDone: 15 },
      ]);
      await rm(join(root, folder, `${newest}.corrupt`), { recursive: true });
      expect(await contents(folder)).toEqual(undisturbed);
    });
  }

  it("without any intact one is an error and no fresh start", async () => {
    await stopAfter("all-corrupt", 2);
    for (const name of await readdir(join(root, "all-corrupt/checkpoints"))) {
      await writeFile(join(root, "all-corrupt/checkpoints", name, "weights.bin"), "");
    }
    await expect(run("all-corrupt")).rejects.toMatchObject({ code: "CHECKPOINT_CORRUPT" });
  });
});
