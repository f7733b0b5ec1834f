import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { describe, expect, it } from "vitest";
import { unconfined } from "../../../synth/sandbox/unconfined.ts";

const folders = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith("rootstep-unconfined-"));

function hostProcesses(text: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/u.test(pid) || pid === String(process.pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(text);
    } catch {
      return false; // it ended meanwhile
    }
  });
}

describe("running code without a sandbox", () => {
  it("keeps the limits of memory, processor time and output, and the environment empty", async () => {
    const memory = await unconfined.run({
      files: { "main.py": "b = bytearray(2**30)" },
      limits: { memoryBytes: 256 * 2 ** 20 },
    });
    expect(memory.stderr).toContain("MemoryError");
    const loop = await unconfined.run({ files: { "main.py": "while True: pass" }, limits: { cpuSeconds: 1 } });
    expect(loop).toMatchObject({ ended: "processor time", exitCode: null });
    const output = await unconfined.run({
      files: { "main.py": "while True: print('x' * 1000)" },
      limits: { outputBytes: 5000 },
    });
    expect(output.ended).toBe("output");
    process.env.ROOTSTEP_TEST_SECRET_2 = "s3cret";
    try {
      const env = await unconfined.run({ files: { "main.py": "import os; print(sorted(os.environ))" } });
      expect(env.stdout).not.toContain("ROOTSTEP_TEST_SECRET_2");
    } finally {
      delete process.env.ROOTSTEP_TEST_SECRET_2;
    }
  });

  it("ends the children with the program at the wall clock, and leaves no folder behind", async () => {
    const marker = `child-${process.pid}`;
    const source = `
import subprocess, time
subprocess.Popen(["/usr/bin/python3", "-c", "import time; time.sleep(600)", "${marker}"])
print("started", flush=True)
time.sleep(600)
`;
    const before = folders();
    const running = unconfined.run({ files: { "main.py": source }, limits: { wallSeconds: 3 } });
    await expect.poll(() => hostProcesses(marker).length, { timeout: 10_000 }).toBeGreaterThan(0);
    expect(await running).toMatchObject({ ended: "wall clock", stdout: "started\n" });
    await expect.poll(() => hostProcesses(marker), { timeout: 5000 }).toEqual([]);
    expect(folders().filter((name) => !before.includes(name))).toEqual([]);
  });
});
