import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  checkpointName,
  listCheckpoints,
  loadCheckpoint,
  loadLatestIntact,
  pruneCheckpoints,
  saveCheckpoint,
} from "../../trainer/checkpoints.ts";
import { appendRecord, truncateRecords } from "../../trainer/jsonl.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rootstep-checkpoints-"));
});
afterEach(() => rm(folder, { recursive: true }));

type Reason = "start" | "scheduled" | "best" | "final" | "interrupted";
const save = (stepsDone: number, reason: Reason = "scheduled", optimizer = true) =>
  saveCheckpoint(
    folder,
    { kind: "grpo", stepsDone, reason, configHash: "c", dataHash: "d", engine: "e", loop: { step: stepsDone } },
    { weights: Uint8Array.of(stepsDone, 1, 2), ...(optimizer && { optimizer: Uint8Array.of(9) }) },
  );

describe("a checkpoint", () => {
  it("comes back as it was saved, with and without optimiser state", async () => {
    const { content, engineState } = await loadCheckpoint(await save(40));
    expect(content).toMatchObject({ stepsDone: 40, reason: "scheduled", loop: { step: 40 } });
    expect([...engineState.weights]).toEqual([40, 1, 2]);
    expect([...(engineState.optimizer ?? [])]).toEqual([9]);
    expect((await loadCheckpoint(await save(41, "scheduled", false))).engineState.optimizer).toBeUndefined();
  });

  it("lies in a folder named after its steps, and replaces an older one of that name", async () => {
    expect(checkpointName(40)).toBe("step-000040");
    await save(40);
    await save(40, "final");
    expect(await readdir(folder)).toEqual(["step-000040"]);
    expect((await loadCheckpoint(join(folder, "step-000040"))).content.reason).toBe("final");
  });

  it("is corrupt when a blob is shorter, missing or changed, or its state is torn", async () => {
    const damages: ((path: string) => Promise<void>)[] = [
      (path) => writeFile(join(path, "weights.bin"), Uint8Array.of(1, 1)),
      (path) => rm(join(path, "optimizer.bin")),
      (path) => rm(join(path, "state.json")),
      async (path) => {
        const text = await readFile(join(path, "state.json"), "utf8");
        await writeFile(join(path, "state.json"), text.slice(0, text.length >> 1));
      },
      async (path) => {
        const text = await readFile(join(path, "state.json"), "utf8");
        await writeFile(join(path, "state.json"), text.replace('"step": 3', '"step": 4'));
      },
    ];
    for (const damage of damages) {
      const path = await save(3);
      await damage(path);
      await expect(loadCheckpoint(path)).rejects.toMatchObject({ code: "CHECKPOINT_CORRUPT" });
    }
    await expect(loadCheckpoint(join(folder, "step-999999"))).rejects.toMatchObject({ code: "FILE_MISSING" });
  });

  it("is taken from the newest intact one; half-written folders do not count", async () => {
    expect(await loadLatestIntact(folder)).toEqual({ checkpoint: undefined, corrupt: [] });
    for (const step of [5, 10, 15]) await save(step);
    await writeFile(join(folder, "step-000015", "weights.bin"), "");
    const { checkpoint, corrupt } = await loadLatestIntact(folder);
    expect(checkpoint?.content.stepsDone).toBe(10);
    expect(corrupt.map((each) => [each.folder, each.error.code])).toEqual([
      [join(folder, "step-000015"), "CHECKPOINT_CORRUPT"],
    ]);
  });

  it("is pruned to the newest, the best, and no extra one of an interruption", async () => {
    for (const step of [0, 5, 10, 15]) await save(step);
    await save(17, "interrupted");
    await pruneCheckpoints(folder, 2, [5]);
    expect(await listCheckpoints(folder)).toEqual([5, 10, 15, 17]);
    await save(20);
    await pruneCheckpoints(folder, 2, [5]);
    expect(await listCheckpoints(folder)).toEqual([5, 15, 20]);
  });
});

describe("a record file", () => {
  const steps = (record: unknown): boolean => (record as { step: number }).step < 2;

  it("is cut before the first record that goes, and loses a torn last line", async () => {
    const path = join(folder, "metrics.jsonl");
    for (const step of [0, 1, 2, 3]) await appendRecord(path, { step });
    expect(await truncateRecords(path, steps)).toBe(2);
    expect(await readFile(path, "utf8")).toBe('{"step":0}\n{"step":1}\n');
    await writeFile(path, '{"step":0}\n{"step":');
    expect(await truncateRecords(path, steps)).toBe(1);
    expect(await readFile(path, "utf8")).toBe('{"step":0}\n');
  });

  it("stays missing where it is missing, and is refused with a broken line inside", async () => {
    expect(await truncateRecords(join(folder, "none.jsonl"), steps)).toBe(0);
    expect(await readdir(folder)).toEqual([]);
    const path = join(folder, "metrics.jsonl");
    await writeFile(path, '{"step":0}\nnonsense\n{"step":1}\n');
    await expect(truncateRecords(path, steps)).rejects.toMatchObject({ code: "RUN_CORRUPT", where: `${path}:2` });
  });
});
