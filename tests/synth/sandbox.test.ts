import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { openSandbox } from "../../synth/proxy/sandbox.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const below = (): string => temporaryFolder("sandbox");
const base = (folder: string): string => join(folder, `rootstep-${userInfo().uid}`);

describe("the folders of a run", () => {
  it("are at the same path each time, and empty at the start", () => {
    const folder = below();
    const paths = [1, 2].map(() => {
      const { work, home, temporary, answerFile, release } = openSandbox({ run: "one", below: folder });
      for (const each of [work, home, temporary]) {
        expect(readdirSync(each)).toEqual([]);
        mkdirSync(join(each, "a", "b"), { recursive: true });
        writeFileSync(join(each, "a", "left-over"), "x");
      }
      expect(existsSync(answerFile)).toBe(false);
      writeFileSync(answerFile, "x");
      release();
      expect(existsSync(dirname(work))).toBe(false);
      return [work, home, temporary, answerFile];
    });
    expect(paths[0]).toEqual(paths[1]);
    expect(new Set(paths[0]).size).toBe(4);
  });

  it("are wiped though the last run was killed and left them, locked", () => {
    const folder = below();
    const first = openSandbox({ run: "one", below: folder });
    writeFileSync(join(first.work, "left-over"), "x");
    const ended = spawnSync(process.execPath, ["-e", "0"]);
    writeFileSync(join(base(folder), "one.lock"), String(ended.pid)); // of a process that is no more
    const second = openSandbox({ run: "one", below: folder });
    expect(readdirSync(second.work)).toEqual([]);
    second.release();
    expect(readdirSync(base(folder))).toEqual([]);
  });

  it("are nobody else's: private, and two runs have folders of their own", () => {
    const folder = below();
    const [one, two] = ["one", "two"].map((run) => openSandbox({ run, below: folder }));
    writeFileSync(join(one!.work, "x"), "of one");
    expect(readdirSync(two!.work)).toEqual([]);
    for (const path of [base(folder), one!.work, one!.home]) expect(statSync(path).mode & 0o077).toBe(0);
    two!.release();
    expect(readFileSync(join(one!.work, "x"), "utf8")).toBe("of one");
    one!.release();
  });

  it("serve one run of a name at a time, and say who holds them", () => {
    const folder = below();
    const first = openSandbox({ run: "one", below: folder });
    writeFileSync(join(first.work, "x"), "still here");
    expect(() => openSandbox({ run: "one", below: folder })).toThrow(`process ${process.pid} is running one already`);
    expect(existsSync(join(first.work, "x"))).toBe(true);
    first.release();
    openSandbox({ run: "one", below: folder }).release();
  });

  it("never lie behind a link that somebody put there", () => {
    const [folder, elsewhere] = [below(), below()];
    mkdirSync(join(elsewhere, "one", "work"), { recursive: true });
    writeFileSync(join(elsewhere, "one", "work", "precious"), "x");
    symlinkSync(elsewhere, base(folder));
    expect(() => openSandbox({ run: "one", below: folder })).toThrow(/belongs to somebody else/u);
    expect(existsSync(join(elsewhere, "one", "work", "precious"))).toBe(true);
  });

  it("hold the files given, each time as they were", () => {
    const [folder, files] = [below(), below()];
    mkdirSync(join(files, "data"));
    writeFileSync(join(files, "data", "input"), "as given");
    for (let run = 0; run < 2; run++) {
      const { work, release } = openSandbox({ run: "one", below: folder, files });
      expect(readFileSync(join(work, "data", "input"), "utf8")).toBe("as given");
      writeFileSync(join(work, "data", "input"), "changed");
      release();
    }
    expect(readFileSync(join(files, "data", "input"), "utf8")).toBe("as given");
    expect(() => openSandbox({ run: "one", below: folder, files: join(files, "none") })).toThrow(/not there/u);
  });
});
