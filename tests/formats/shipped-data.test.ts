import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFile, cp, mkdtemp, readFile, rm, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { shippedFile, verifyShipped } from "../../src/formats/shipped-data.ts";
import { shippedPath } from "../../src/package-root.ts";

describe("shipped data", () => {
  let folder = "";
  const folders: string[] = [];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "rootstep-shipped-"));
    folders.push(folder);
    await cp(shippedPath("data", "gsm8k"), folder, { recursive: true });
  });
  afterAll(async () => {
    await Promise.all(folders.map((each) => rm(each, { recursive: true })));
  });

  test("both sets are as their manifests say, with source and licence", async () => {
    for (const [set, files] of [
      ["who_and_when", 185],
      ["gsm8k", 3],
    ] as const) {
      const manifest = await verifyShipped(set);
      expect(Object.keys(manifest.files)).toHaveLength(files);
      expect(manifest.files).toHaveProperty("LICENSE");
      expect(manifest.source).toMatch(/^https:\/\/github\.com\/.*\/tree\/[0-9a-f]{40}\//);
    }
  });

  test("the files are those of the releases: git blob ids at the pinned commits", async () => {
    const blob = async (set: string, name: string): Promise<string> => {
      const content = await readFile(shippedPath("data", set, name));
      return createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");
    };
    expect(await blob("gsm8k", "test.jsonl")).toBe("e4c2ff4942b9a78bd74f04141224c11e28d12dc9");
    expect(await blob("who_and_when", "Algorithm-Generated/1.json")).toBe("d7e712fb169be8e777a5443f95aa5b9f628217af");
    expect(await blob("who_and_when", "Hand-Crafted/1.json")).toBe("cf2936d7fa71ad5d54ecceb43797718711eeeb5a");
  });

  test("a changed, a missing and an added file are named", async () => {
    const where = async (): Promise<unknown> => verifyShipped({ path: folder }).catch((error: unknown) => error);
    await writeFile(join(folder, "extra.txt"), "");
    expect(await where()).toMatchObject({ code: "DATA_CHECKSUM", where: join(folder, "extra.txt") });
    await unlink(join(folder, "extra.txt"));
    await appendFile(join(folder, "test.jsonl"), "\n");
    expect(await where()).toMatchObject({ code: "DATA_CHECKSUM", where: join(folder, "test.jsonl") });
    await unlink(join(folder, "LICENSE"));
    expect(await where()).toMatchObject({ code: "DATA_CHECKSUM", where: join(folder, "LICENSE") });
  });

  test("a single file is given out after its checksum was found right", async () => {
    expect(await shippedFile("gsm8k", "test.jsonl")).toBe(shippedPath("data", "gsm8k", "test.jsonl"));
    await expect(shippedFile("gsm8k", "../../package.json")).rejects.toMatchObject({ code: "UNKNOWN_NAME" });
  });

  test("the script that writes the manifests finds them up to date", async () => {
    const script = shippedPath("scripts", "data", "checksums.mjs");
    const { stdout } = await promisify(execFile)(process.execPath, [script, "--verify"]);
    expect(stdout).toContain("who_and_when: 185 files as in the manifest");
  });
});
