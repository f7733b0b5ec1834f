import { spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { appendLines } from "../src/append-lines.ts";
import { shippedPath } from "../src/package-root.ts";

function file(): string {
  const folder = mkdtempSync(join(tmpdir(), "rootstep-append-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, "lines.txt");
}
const failed = (cause: unknown): Error => new Error("not written", { cause });

describe("appended lines", () => {
  it("stand in the file, in order, when they are acknowledged", async () => {
    const path = file();
    writeFileSync(path, "old\n");
    const lines = appendLines(openSync(path, "r+"), 4, failed);
    const soon = [lines.appendSoon("ä1"), lines.appendSoon("2")];
    expect(readFileSync(path, "utf8")).toBe("old\n");
    await soon[0];
    expect(readFileSync(path, "utf8")).toBe("old\nä1\n2\n");
    const third = lines.appendSoon("3");
    lines.append("4");
    expect(readFileSync(path, "utf8")).toBe("old\nä1\n2\n3\n4\n");
    await third;
    void lines.appendSoon("5");
    lines.close();
    expect(readFileSync(path, "utf8")).toBe("old\nä1\n2\n3\n4\n5\n");
  });

  it("tell everyone who waits that a write failed", async () => {
    const path = file();
    writeFileSync(path, "");
    const descriptor = openSync(path, "r");
    onTestFinished(() => closeSync(descriptor));
    const lines = appendLines(descriptor, 0, failed);
    const results = await Promise.allSettled([lines.appendSoon("1"), lines.appendSoon("2")]);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(() => lines.append("3")).toThrow("not written");
  });

  it("are all there after SIGKILL, if they were acknowledged, and only whole but for the last", async () => {
    const path = file();
    writeFileSync(path, "");
    const program = `
      import { openSync, writeSync } from "node:fs";
      import { appendLines } from ${JSON.stringify(shippedPath("dist", "src", "append-lines.js"))};
      const lines = appendLines(openSync(${JSON.stringify(path)}, "r+"), 0, (e) => e);
      let next = 0;
      const write = async () => { for (;;) { const n = next++; await lines.appendSoon(n + " " + "x".repeat(2000)); writeSync(1, n + "\\n"); } };
      for (let i = 0; i < 40; i++) write();
    `;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let acknowledged = "";
    child.stdout.on("data", (part: Buffer) => {
      acknowledged += part;
      if (acknowledged.length > 20_000) child.kill("SIGKILL");
    });
    await new Promise((resolve) => child.once("close", resolve));
    const written = readFileSync(path, "utf8").split("\n").slice(0, -1);
    const numbers = new Set(written.map((line) => line.split(" ")[0]));
    const told = acknowledged.split("\n").slice(0, -1);
    expect(told.length).toBeGreaterThan(1000);
    expect(told.filter((number) => !numbers.has(number))).toEqual([]);
    expect(written.every((line) => /^\d+ x{2000}$/u.test(line))).toBe(true);
    expect(statSync(path).size).toBeGreaterThan(0);
  });
});
