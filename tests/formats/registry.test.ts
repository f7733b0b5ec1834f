import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { detectFormat, formatById, formats } from "../../src/formats/registry.ts";

describe("the registry", () => {
  test("an unknown format is answered with the names there are", () => {
    expect(() => formatById("nope")).toThrow(/tracertraj.*who-and-when/);
    expect(new Set(formats.map(({ id }) => id)).size).toBe(formats.length);
  });

  test("content that is no format is refused by name", async () => {
    const folder = await mkdtemp(join(tmpdir(), "rootstep-detect-"));
    for (const [name, content] of [
      ["a.jsonl", '{"messages":[]}\n'],
      ["b.json", "{}"],
      ["c.txt", "hello\n"],
      ["d.jsonl", ""],
    ] as const) {
      const file = join(folder, name);
      await writeFile(file, content);
      await expect(detectFormat(file)).rejects.toMatchObject({ code: "DATA_UNKNOWN_FORMAT", where: file });
    }
    await expect(detectFormat(folder)).rejects.toMatchObject({ code: "DATA_UNKNOWN_FORMAT" });
    await rm(folder, { recursive: true });
  });
});
