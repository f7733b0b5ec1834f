import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parquetReadObjects } from "hyparquet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { loadTrajectoryFiles } from "../../../src/evaluation/datasets.ts";
import { tracerMessages } from "../../../src/methods/tracer/tracer.ts";
import { methodView } from "../../../src/methods/view.ts";
import { shippedPath } from "../../../src/package-root.ts";
import type { Trajectory } from "../../../src/trajectory/schema.ts";
import { trainConfigSchema } from "../../../trainer/config.ts";
import { exportVerl, type VerlExport } from "../../../trainer/verl/export.ts";

const LOGS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((n) =>
  shippedPath("data", "who_and_when", "Algorithm-Generated", `${n}.json`),
);
const python = (...args: string[]): unknown => JSON.parse(execFileSync("python3", args, { encoding: "utf8" }));
const checked = z.object({ vectors: z.number(), wrong: z.array(z.unknown()), score: z.unknown() });

describe("the job for verl", () => {
  const out = mkdtempSync(join(tmpdir(), "rootstep-verl-"));
  const config = trainConfigSchema.parse({ steps: 50, labels: ["human"], withReference: false, B0: 0.3, seed: 4 });
  let trajectories: Trajectory[];
  let written: VerlExport;
  const rowsOf = async (name: string) => {
    const bytes = readFileSync(join(out, name));
    return parquetReadObjects({ file: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) });
  };

  beforeAll(async () => {
    const { items } = await loadTrajectoryFiles(LOGS);
    trajectories = items.map(({ trajectory }) => trajectory);
    const [unlabelled] = trajectories;
    if (unlabelled === undefined) throw new Error("no log");
    written = exportVerl({
      config,
      trajectories: [...trajectories, { ...unlabelled, id: "unlabelled", labels: [] }],
      heldOutShare: 0.3,
      logBudget: 2_000,
      model: "Qwen/Qwen3-8B",
      out,
    });
  });
  afterAll(() => rmSync(out, { recursive: true, force: true }));

  it("holds every usable record once, with the tracer's own prompt and its label", async () => {
    const rows = [...(await rowsOf("train.parquet")), ...(await rowsOf("test.parquet"))];
    expect(written).toMatchObject({ train: rows.length - written.heldOut, refused: { "no-label": 1 } });
    expect(written.heldOut).toBeGreaterThan(0);
    const byId = new Map(rows.map((row) => [z.object({ id: z.string() }).parse(row.extra_info).id, row]));
    expect([...byId.keys()].sort()).toEqual(trajectories.map(({ id }) => id).sort());
    for (const trajectory of trajectories) {
      const [label] = trajectory.labels;
      const { messages } = tracerMessages(methodView(trajectory, { withReference: false }), 2_000);
      expect(byId.get(trajectory.id)).toMatchObject({
        data_source: "rootstep",
        prompt: messages.map(({ role, content }) => ({ role, content })),
        reward_model: { style: "rule", ground_truth: `${label?.agent} | ${label?.step}` },
      });
    }
  });

  it("gives in Python the reward of the shared vectors", () => {
    const result = checked.parse(
      python(
        shippedPath("tests", "trainer", "verl", "check_reward.py"),
        out,
        shippedPath("tests", "reward", "vectors.json"),
      ),
    );
    expect(result.wrong).toEqual([]);
    expect(result.vectors).toBeGreaterThanOrEqual(78);
    expect(result.score).toEqual({
      score: 0.5 * Math.exp(-0.5) + 0.5,
      format: 1,
      step_reward: Math.exp(-0.5),
      agent_reward: 1,
    });
  });

  it("configures GRPO without KL and samples untruncated", () => {
    expect(parse(readFileSync(join(out, "config.yaml"), "utf8"))).toMatchObject({
      algorithm: { adv_estimator: "grpo", use_kl_in_reward: false },
      data: { train_batch_size: 32, truncation: "error" },
      actor_rollout_ref: {
        actor: { use_kl_loss: false, clip_ratio: 0.3, ppo_mini_batch_size: 16, optim: { lr: 1e-6 } },
        rollout: { n: 8, temperature: 1, top_p: 1, top_k: -1 },
      },
      custom_reward_function: { name: "compute_score" },
      trainer: { total_training_steps: 50 },
    });
  });

  it("sets the decaying clip before each update", () => {
    const program = [
      "import json, sys; sys.path.insert(0, sys.argv[1])",
      "import clip_schedule",
      "class Data: meta_info = {'global_steps': 26}",
      "class Actor:",
      "    config = {}",
      "    def update_policy(self, data): return dict(self.config)",
      "clip_schedule.install(Actor, 50, 0.3)",
      "print(json.dumps([Actor().update_policy(Data()), clip_schedule.clip_bound(49, 50, 0.3)]))",
    ].join("\n");
    // B_25 = .3 · (1 − 25/50); at the end the floor of .2 · B0.
    expect(python("-c", program, out)).toEqual([
      { clip_ratio: 0.15, clip_ratio_low: 0.15, clip_ratio_high: 0.15 },
      0.06,
    ]);
  });
});
