import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentProgress } from "../../../src/runs/progress.ts";
import { openRunFolder } from "../../../src/runs/run-folder.ts";
import { synthConfigSchema } from "../../../synth/pipeline/config.ts";
import type { SynthReport } from "../../../synth/pipeline/report.ts";
import { synthesize } from "../../../synth/synthesize.ts";

/** A run of the whole pipeline on the simulator, in a folder that the caller removes. */
export async function madeDataset(settings: unknown): Promise<{ root: string; path: string; report: SynthReport }> {
  const config = synthConfigSchema.parse(settings);
  const root = mkdtempSync(join(tmpdir(), "rootstep-dataset-"));
  const path = join(root, "run");
  const folder = openRunFolder({ path, kind: "synth", version: "test", settings: config, now: () => new Date(0) });
  const openModel = (): never => {
    throw new Error("no model server in this test");
  };
  try {
    return { root, path, report: await synthesize({ config, folder, progress: silentProgress, openModel }) };
  } finally {
    folder.release();
  }
}

export const SMALL = {
  tasks: { set: "chain", limit: 40 },
  model: { regime: "systematic", hardRate: 0.5, noise: 0.02 },
} as const;
