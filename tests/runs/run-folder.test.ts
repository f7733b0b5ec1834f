import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type OpenRunOptions, openRunFolder, RUN_FOLDER_VERSION, readRunManifest } from "../../src/runs/run-folder.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const options = (path: string, more: Partial<OpenRunOptions> = {}): OpenRunOptions => ({
  path,
  kind: "synth",
  version: "0.1.0",
  settings: { seed: 1, search: { alpha: 0.05 } },
  now: () => new Date("2026-01-02T03:04:05Z"),
  ...more,
});
const folderPath = (): string => join(temporaryFolder("run"), "run");

describe("a run folder", () => {
  it("is made with a manifest, and opened again with the same settings", () => {
    const path = folderPath();
    const first = openRunFolder(options(path));
    expect(first.resumed).toBe(false);
    first.release();
    const second = openRunFolder(options(path, { now: () => new Date() }));
    expect(second.resumed).toBe(true);
    expect(second.manifest.startedAt).toBe("2026-01-02T03:04:05.000Z");
    second.release();
    expect(existsSync(join(path, "lock"))).toBe(false);
  });

  it("refuses other settings and names what differs", () => {
    const path = folderPath();
    openRunFolder(options(path)).release();
    const other = options(path, { settings: { seed: 2, search: { alpha: 0.05, beta: 1 } } });
    expect(() => openRunFolder(other)).toThrow(
      expect.objectContaining({
        code: "RUN_MISMATCH",
        what: expect.stringContaining("search.beta was absent, now 1; seed was 1, now 2"),
      }),
    );
    expect(() => openRunFolder(options(path, { kind: "train" }))).toThrow(/a synth run, not a train run/u);
    expect(() => openRunFolder(options(path, { inputs: { data: "abc" } }))).toThrow(
      /inputs\.data was absent, now "abc"/u,
    );
  });

  it("refuses a folder of another version, leaving it as it is", () => {
    const path = folderPath();
    openRunFolder(options(path)).release();
    const manifest = join(path, "manifest.json");
    const other = readFileSync(manifest, "utf8").replace(
      `"runFolderVersion": ${RUN_FOLDER_VERSION}`,
      '"runFolderVersion": 99',
    );
    writeFileSync(manifest, other);
    expect(() => openRunFolder(options(path))).toThrow(expect.objectContaining({ code: "RUN_VERSION" }));
    expect(readFileSync(manifest, "utf8")).toBe(other);
  });

  it.each([
    ["not JSON", "{", "RUN_CORRUPT"],
    ["another shape", '{"runFolderVersion":1}', "RUN_CORRUPT"],
  ])("refuses a manifest that is %s", (_, content, code) => {
    const path = folderPath();
    openRunFolder(options(path)).release();
    writeFileSync(join(path, "manifest.json"), content);
    expect(() => readRunManifest(path)).toThrow(expect.objectContaining({ code }));
  });

  it("is held by one process, and free again when its holder was killed", () => {
    const path = folderPath();
    const holder = openRunFolder(options(path));
    expect(() => openRunFolder(options(path))).toThrow(expect.objectContaining({ code: "RUN_LOCKED" }));
    holder.release();
    writeFileSync(join(path, "lock"), "999999999"); // no such process
    openRunFolder(options(path)).release();
  });

  it("replaces files whole and leaves no temporary ones", () => {
    const path = folderPath();
    const folder = openRunFolder(options(path));
    folder.write("a/report.json", "one");
    folder.write("a/report.json", "two");
    folder.release();
    expect(readFileSync(join(path, "a", "report.json"), "utf8")).toBe("two");
    expect(readdirSync(join(path, "a"))).toEqual(["report.json"]);
  });

  it("says when a path is no run folder", () => {
    expect(() => readRunManifest(folderPath())).toThrow(expect.objectContaining({ code: "FILE_MISSING" }));
  });
});
