import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { floors, measure, runSet } from "../../../scripts/embedded/measure.ts";
import { shippedPath } from "../../../src/package-root.ts";
import { openEmbeddedEngine } from "../../../trainer/engines/embedded/engine.ts";
import { GRAPHS, readManifest } from "../../../trainer/engines/embedded/manifest.ts";
import { VOCABULARY_SIZE } from "../../../trainer/engines/embedded/vocabulary.ts";

const shipped = shippedPath("data", "embedded");

describe("damaged files are refused, not run", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "rootstep-embedded-"));
    await cp(shipped, folder, { recursive: true });
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** Turns one bit of a file. */
  async function damage(file: string) {
    const bytes = await readFile(join(folder, file));
    bytes[Math.floor(bytes.length / 2)]! ^= 1;
    await writeFile(join(folder, file), bytes);
  }

  test("a changed graph", async () => {
    await damage("graphs/prefill.onnx");
    const engine = await openEmbeddedEngine({ folder });
    await expect(engine.sample({ prompts: [[20]], n: 1, temperature: 0, seed: "a" })).rejects.toMatchObject({
      code: "DATA_CHECKSUM",
      where: join(folder, "graphs/prefill.onnx"),
    });
    await engine.close();
  });

  test("changed weights", async () => {
    const { weights } = await readManifest(folder);
    await damage(weights!.file);
    await expect(openEmbeddedEngine({ folder })).rejects.toMatchObject({ code: "DATA_CHECKSUM" });
  });

  test("a missing file", async () => {
    await rm(join(folder, "manifest.json"));
    await expect(openEmbeddedEngine({ folder })).rejects.toMatchObject({ code: "FILE_MISSING" });
  });

  test("a manifest of another shape", async () => {
    await writeFile(join(folder, "manifest.json"), JSON.stringify({ formatVersion: 2 }));
    await expect(openEmbeddedEngine({ folder })).rejects.toMatchObject({ code: "DATA_INVALID" });
  });

  test("weights of another model", async () => {
    await expect(openEmbeddedEngine({ weights: new Float32Array(10) })).rejects.toMatchObject({
      code: "CHECKPOINT_CORRUPT",
    });
  });
});

describe("what ships", () => {
  test("has every graph, a vocabulary of the codec's size, and weighs at most 3 MB", async () => {
    const manifest = await readManifest(shipped);
    expect(Object.keys(manifest.graphs).sort()).toEqual([...GRAPHS].sort());
    expect(manifest.model.vocabulary).toBe(VOCABULARY_SIZE);
    const files = (await readdir(shipped, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
    const sizes = await Promise.all(files.map(async (file) => (await stat(join(file.parentPath, file.name))).size));
    expect(sizes.reduce((a, b) => a + b, 0)).toBeLessThan(3e6);
  });

  test("the warm start writes the format, beats no floor greedily, and hits the step about as often as its labels", async () => {
    const engine = await openEmbeddedEngine();
    const runs = runSet("development", "held-out", 300);
    const sampled = await measure(engine, runs, 1);
    const greedy = await measure(engine, runs, 0);
    await engine.close();
    expect(sampled.format.share).toBeGreaterThan(0.97);
    expect(sampled.step.share).toBeGreaterThan(floors(runs, runs).layoutModeStep!.share);
    expect(sampled.step.share).toBeGreaterThan(greedy.step.share);
  });
});
