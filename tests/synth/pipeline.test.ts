import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readTracerTraj } from "../../src/formats/tracertraj/read.ts";
import { validateFile } from "../../src/formats/validate.ts";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { silentProgress } from "../../src/runs/progress.ts";
import { openRunFolder } from "../../src/runs/run-folder.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { synthConfigSchema } from "../../synth/pipeline/config.ts";
import type { SynthReport } from "../../synth/pipeline/report.ts";
import { synthesize } from "../../synth/synthesize.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const noServer = (): ChatModel => {
  throw new Error("no model server in this test");
};

async function run(settings: unknown): Promise<{ readonly path: string; readonly report: SynthReport }> {
  const config = synthConfigSchema.parse(settings);
  const path = join(temporaryFolder("synth"), "run");
  const folder = openRunFolder({ path, kind: "synth", version: "test", settings: config, now: () => new Date(0) });
  try {
    return { path, report: await synthesize({ config, folder, progress: silentProgress, openModel: noServer }) };
  } finally {
    folder.release();
  }
}

async function dataset(path: string, split: string): Promise<Trajectory[]> {
  const trajectories: Trajectory[] = [];
  for await (const { trajectory } of readTracerTraj(join(path, "dataset", `${split}.jsonl`)))
    trajectories.push(trajectory);
  return trajectories;
}

const share = (part: { readonly hits: number; readonly n: number } | undefined): number =>
  part === undefined ? Number.NaN : part.hits / part.n;

describe("synth run on the simulator", () => {
  it("labels far better with a control arm than by first flips in the slip regime (100 GSM8K problems, seed 3)", async () => {
    const { report } = await run({
      seed: 3,
      tasks: { set: "gsm8k", limit: 100 },
      model: { regime: "slip", noise: 0.1 },
      search: { strategies: ["exhaustive", "paper"] },
      inject: { operator: "none" },
    });
    const [exhaustive, paper] = report.strategies;
    // synthesis.md: paper 5–8% in this regime at T = 20, exhaustive 83–88%; here T is 5 to 20.
    expect(exhaustive?.stepAccuracy?.n).toBeGreaterThan(15);
    expect(share(exhaustive?.stepAccuracy)).toBeGreaterThan(0.8);
    expect(share(paper?.stepAccuracy)).toBeLessThan(0.4);
    expect(report.notReplayable).toBe(0);
  });

  it("writes a valid dataset, no group in two splits, and injected runs that look like natural ones", async () => {
    const { path, report } = await run({
      tasks: { set: "chain", limit: 80 },
      model: { regime: "systematic", hardRate: 0.5, noise: 0.02 },
    });
    const [train, test] = [await dataset(path, "train"), await dataset(path, "test")];
    expect(train.length + test.length).toBe(report.dataset.train + report.dataset.test);
    const groups = new Set(train.map(({ task }) => task.groupId));
    expect(test.filter(({ task }) => groups.has(task.groupId))).toEqual([]);
    for (const split of ["train", "test"]) {
      const validation = await validateFile(join(path, "dataset", `${split}.jsonl`));
      expect([validation.faults, validation.inconsistencies]).toEqual([[], []]);
    }
    const all = [...train, ...test];
    const sources = (trajectory: Trajectory) => trajectory.labels[0]?.source;
    expect(new Set(all.map(sources))).toEqual(new Set(["counterfactual", "injection"]));
    // Apart from the label, a record of either kind has the same fields with the same kinds of values.
    const form = ({ labels: _, id: __, task: ___, steps, ...rest }: Trajectory): string =>
      JSON.stringify({ ...rest, outcome: { ...rest.outcome, answer: "" }, step: Object.keys(steps[0] ?? {}) });
    expect(new Set(all.map(form)).size).toBe(1);
    for (const trajectory of all) expect(JSON.stringify({ ...trajectory, labels: [] })).not.toMatch(/inject|perturb/iu);
  });

  it("makes the same records for the same seed, whatever the concurrency, and others for another", async () => {
    const settings = { tasks: { set: "chain", limit: 30 }, model: { regime: "systematic", noise: 0.05 } };
    const once = await run(settings);
    const again = await run({ ...settings, concurrency: 8 });
    const other = await run({ ...settings, seed: 9 });
    expect(await dataset(again.path, "train")).toEqual(await dataset(once.path, "train"));
    expect(await dataset(other.path, "train")).not.toEqual(await dataset(once.path, "train"));
  });
});
