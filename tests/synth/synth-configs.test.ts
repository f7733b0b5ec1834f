import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { readTracerTraj } from "../../src/formats/tracertraj/read.ts";
import { shippedPath } from "../../src/package-root.ts";
import { silentProgress } from "../../src/runs/progress.ts";
import { openRunFolder } from "../../src/runs/run-folder.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { synthConfigSchema } from "../../synth/pipeline/config.ts";
import { synthesize } from "../../synth/synthesize.ts";
import { systemById } from "../../synth/systems/registry.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const CONFIGS = readdirSync(shippedPath("configs")).filter((name) => name.startsWith("synth-"));

describe("configs/synth-*.yaml, from tasks to labels on the simulator", () => {
  it("are there for every domain", () => {
    expect(CONFIGS).toEqual(["synth-blackjack.yaml", "synth-hotpotqa.yaml", "synth-math.yaml", "synth-mbppplus.yaml"]);
  });

  it.each(CONFIGS)(
    "%s labels failed runs rightly (12 tasks)",
    async (name) => {
      const shipped = synthConfigSchema.parse(parse(readFileSync(shippedPath("configs", name), "utf8")));
      const config = { ...shipped, tasks: { ...shipped.tasks, limit: 12 } };
      const folderPath = temporaryFolder("synth-config");
      try {
        const path = join(folderPath, "run");
        const folder = openRunFolder({
          path,
          kind: "synth",
          version: "test",
          settings: config,
          now: () => new Date(0),
        });
        try {
          const openModel = () => {
            throw new Error("no model server in this test");
          };
          const report = await synthesize({ config, folder, progress: silentProgress, openModel });
          const [strategy] = report.strategies;
          expect(report).toMatchObject({ runs: 12, notReplayable: 0 });
          expect(report.failedRuns).toBeGreaterThan(3);
          expect(strategy?.labelled.hits).toBeGreaterThan(report.failedRuns / 2);
          expect((strategy?.stepAccuracy?.hits ?? 0) / (strategy?.stepAccuracy?.n ?? 0)).toBeGreaterThan(0.8);
        } finally {
          folder.release();
        }
        const trajectories: Trajectory[] = [];
        for (const split of ["train", "test"]) {
          for await (const { trajectory } of readTracerTraj(join(path, "dataset", `${split}.jsonl`))) {
            trajectories.push(trajectory);
          }
        }
        expect(trajectories.length).toBeGreaterThan(0);
        for (const { system, steps, labels, outcome } of trajectories) {
          expect(outcome.success).toBe(false);
          expect(systemById(system).agents).toContain(labels[0]?.agent);
          expect(steps[labels[0]?.step ?? -1]?.agent).toBe(labels[0]?.agent);
        }
      } finally {
        rmSync(folderPath, { recursive: true });
      }
    },
    300_000,
  );
});
