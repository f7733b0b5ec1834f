import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { bubblewrapSandbox } from "../../../synth/sandbox/bubblewrap.ts";
import type { SandboxLimits, SandboxResult } from "../../../synth/sandbox/sandbox.ts";

const sandbox = bubblewrapSandbox();

const run = (source: string, limits?: Partial<SandboxLimits>): Promise<SandboxResult> =>
  sandbox.run({ files: { "main.py": source }, ...(limits === undefined ? {} : { limits }) });

/** Runs statements and prints what came of each: `ok` with a value, or the error's class. */
const attempts = async (...statements: readonly string[]): Promise<string[]> => {
  const source = [
    "import os, socket, subprocess, pathlib",
    "def attempt(work):",
    "    try:",
    "        print('ok', work())",
    "    except BaseException as error:",
    "        print(type(error).__name__)",
    ...statements.map((statement) => `attempt(lambda: ${statement})`),
  ].join("\n");
  const { stdout, stderr } = await run(source);
  expect(stderr).toBe("");
  return stdout.trim().split("\n");
};

/** Processes of the host whose command line holds the text. */
function hostProcesses(text: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name) && name !== String(process.pid))
    .filter((pid) => commandLine(pid).includes(text));
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

describe("the bubblewrap sandbox", () => {
  it("runs a program with files beside it and gives back what it said and its exit code", async () => {
    const result = await sandbox.run({
      files: {
        "main.py": "import sys\nprint(open('/program/data.txt').read())\nprint('!', file=sys.stderr)\nsys.exit(3)",
        "data.txt": "48 + 24",
      },
    });
    expect(result).toEqual({ ended: "exited", exitCode: 3, stdout: "48 + 24\n", stderr: "!\n" });
  });

  it("has no network: no interface but loopback, no connection to a server on this host, no names", async () => {
    const server = createServer((_, response) => response.end("reached"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    try {
      expect(
        await attempts(
          "[name for _, name in socket.if_nameindex()]",
          `socket.create_connection(('127.0.0.1', ${port}), 2)`,
          "socket.create_connection(('1.1.1.1', 53), 2)",
          "socket.getaddrinfo('localhost.example', 80)",
        ),
      ).toEqual(["ok ['lo']", "ConnectionRefusedError", "OSError", "gaierror"]);
    } finally {
      server.close();
    }
  });

  it("can write nothing but its own /tmp, which starts empty each time", async () => {
    const marker = join(tmpdir(), `rootstep-escape-${process.pid}`);
    const first = await attempts(
      "os.listdir('/tmp')",
      `pathlib.Path('${marker}').write_text('here')`,
      "pathlib.Path('/usr/bin/evil').write_text('')",
      "pathlib.Path('/program/main.py').write_text('')",
      "pathlib.Path('/evil').write_text('')",
      "os.chmod('/usr', 0o777)",
      "os.mkdir('/usr/evil')",
    );
    expect(first[0]).toBe("ok []");
    expect(first[1]).toBe("ok 4");
    expect(first.slice(2)).toEqual(first.slice(2).filter((line) => !line.startsWith("ok")));
    expect(readdirSync(tmpdir())).not.toContain(marker.split("/").at(-1));
    expect((await attempts("os.listdir('/tmp')"))[0]).toBe("ok []");
  });

  it("shows no file of the host outside its system folders, and no secret of the environment", async () => {
    const folder = mkdtempSync(join(tmpdir(), "rootstep-secret-"));
    writeFileSync(join(folder, "secret.txt"), "s3cret", { mode: 0o644 });
    process.env.ROOTSTEP_TEST_SECRET = "s3cret";
    try {
      const said = await attempts(
        "sorted(os.listdir('/'))",
        "open('/etc/passwd').read()",
        `open('${folder}/secret.txt').read()`,
        "os.listdir('/home')",
        "os.listdir('/root')",
        "sorted(os.environ)",
        "[open(f'/proc/{pid}/environ').read() for pid in os.listdir('/proc') if pid.isdigit()][0:0]",
      );
      expect(said[0]).toMatch(
        /^ok \['bin', 'dev', 'lib'(?:, 'lib32')?, (?:'lib64', )?'proc', 'program', 'sbin', 'tmp', 'usr'\]$/u,
      );
      expect(said.slice(1, 5)).toEqual(Array(4).fill("FileNotFoundError"));
      expect(said.join("\n")).not.toContain("SECRET");
      expect(said.join("\n")).not.toContain("s3cret");
    } finally {
      delete process.env.ROOTSTEP_TEST_SECRET;
      rmSync(folder, { recursive: true });
    }
  });

  it("is not root inside, has no capability, and cannot make namespaces or mount", async () => {
    const said = await attempts(
      "[line.split()[1] for line in open('/proc/self/status') if line.startswith('CapEff')]",
      "subprocess.run(['mount', '-t', 'tmpfs', 'x', '/usr'], capture_output=True).returncode != 0",
      "os.setuid(0)",
    );
    expect(said[0]).toBe("ok ['0000000000000000']");
    expect(said[1]).toBe("ok True");
    expect(said[2]).toMatch(/^(?:OSError|PermissionError)$/u);
  });

  it("bounds a fork bomb", async () => {
    const bomb = `
import os, time
born = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        born += 1
except OSError as error:
    print(born, type(error).__name__, flush=True)
    os._exit(0)
`;
    const result = await run(bomb, { processes: 12, wallSeconds: 15 });
    const [born, error] = result.stdout.trim().split(" ");
    expect(error).toBe("BlockingIOError");
    expect(Number(born)).toBeGreaterThan(0);
    expect(Number(born)).toBeLessThan(12);
  });

  it("bounds memory, in the heap and in /tmp", async () => {
    const heap = await run("b = bytearray(2**30)\nprint(len(b))", { memoryBytes: 256 * 2 ** 20 });
    expect(heap.stdout).toBe("");
    expect(heap.stderr).toContain("MemoryError");
    const files = await run(
      "n = 0\ntry:\n  for i in range(100):\n    n += open(f'/tmp/{i}', 'wb').write(b'x' * 2**19)\nexcept OSError as e:\n  print(n, e.errno)",
      { fileBytes: 4 * 2 ** 20 },
    );
    const [written, errno] = files.stdout.trim().split(" ").map(Number);
    expect(errno).toBe(28); // ENOSPC
    expect(written).toBeLessThanOrEqual(4 * 2 ** 20);
  });

  it("ends an infinite loop by its processor time, even if the program ignores the signal", async () => {
    expect(await run("while True: pass", { cpuSeconds: 1 })).toMatchObject({ ended: "processor time", exitCode: null });
    const stubborn = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass";
    expect((await run(stubborn, { cpuSeconds: 1 })).exitCode).not.toBe(0);
  });

  it("ends a sleeper and all its children by the wall clock, and leaves no process behind", async () => {
    const marker = `sleeper-${process.pid}`;
    const source = `
import subprocess, time, os
for _ in range(3):
    subprocess.Popen(["/usr/bin/python3", "-c", "import time; time.sleep(600)", "${marker}"], start_new_session=True)
print("started", flush=True)
time.sleep(600)
`;
    const running = run(source, { wallSeconds: 4 });
    await expect.poll(() => hostProcesses(marker).length, { timeout: 10_000 }).toBeGreaterThanOrEqual(3);
    expect(await running).toMatchObject({ ended: "wall clock", exitCode: null, stdout: "started\n" });
    await expect.poll(() => hostProcesses(marker), { timeout: 5000 }).toEqual([]);
  });

  it("leaves no process behind when a program ends before its children", async () => {
    const marker = `orphan-${process.pid}`;
    const source = `
import subprocess
subprocess.Popen(["/usr/bin/python3", "-c", "import time; time.sleep(600)", "${marker}"], start_new_session=True,
                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print("done")
`;
    expect(await run(source)).toMatchObject({ ended: "exited", exitCode: 0, stdout: "done\n" });
    await expect.poll(() => hostProcesses(marker), { timeout: 5000 }).toEqual([]);
  });

  it("caps output and kills what writes more", async () => {
    const result = await run("while True: print('x' * 1000)", { outputBytes: 10_000 });
    expect(result.ended).toBe("output");
    expect(result.stdout.length).toBe(10_000);
  });

  it("sees no process of the host and cannot kill its parent", async () => {
    const said = await attempts(
      "len([pid for pid in os.listdir('/proc') if pid.isdigit()]) < 5",
      `os.kill(${process.pid}, 9) if os.path.exists('/proc/${process.pid}') else None`,
      "os.kill(os.getppid(), 9)",
      "os.kill(1, 9)",
      "'still here'",
    );
    expect(said[0]).toBe("ok True");
    expect(process.pid).toBeGreaterThan(0);
    // The init of a pid namespace takes no SIGKILL from inside.
    expect(said.at(-1)).toBe("ok still here");
  });

  it("stops when it is told to", async () => {
    const controller = new AbortController();
    const running = sandbox.run({ files: { "main.py": "import time; time.sleep(600)" } }, controller.signal);
    setTimeout(() => controller.abort(), 50);
    await expect(running).rejects.toMatchObject({ code: "INTERRUPTED" });
  });

  it("takes a program that pretends to be a failing bubblewrap for what it is", async () => {
    const result = await run(
      "import sys\nprint('bwrap: No permissions to create new namespace', file=sys.stderr)\nsys.exit(1)",
    );
    expect(result).toMatchObject({ ended: "exited", exitCode: 1 });
  });

  it("refuses file names that lead elsewhere", async () => {
    const files = { "main.py": "", "../../usr/evil.py": "" };
    await expect(sandbox.run({ files })).rejects.toMatchObject({ code: "SANDBOX_FAILED" });
  });
});

describe("where bubblewrap does not work", () => {
  it("says that it is not installed", async () => {
    await expect(bubblewrapSandbox("bwrap-that-is-not-there").require()).rejects.toMatchObject({
      code: "SANDBOX_UNAVAILABLE",
      what: expect.stringContaining("bwrap"),
      hint: expect.stringContaining("nstall bubblewrap"),
    });
  });

  it.each([
    ["bwrap: No permissions to create new namespace, likely because the kernel does not allow it", /user namespaces/u],
    ["bwrap: setting up uid map: Permission denied", /user namespaces/u],
    ["bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", /AppArmor/u],
    ["bwrap: Can't mount proc on /newroot/proc: Operation not permitted", /masks \/proc/u],
  ])("says why for %s", async (line, why) => {
    const folder = mkdtempSync(join(tmpdir(), "rootstep-bwrap-"));
    const stub = join(folder, "bwrap");
    writeFileSync(stub, `#!/bin/sh\necho "${line}" >&2\nexit 1\n`, { mode: 0o755 });
    chmodSync(folder, 0o755);
    try {
      const broken = bubblewrapSandbox(stub);
      await expect(broken.require()).rejects.toMatchObject({
        code: "SANDBOX_UNAVAILABLE",
        what: expect.stringMatching(why),
      });
      await expect(broken.run({ files: { "main.py": "" } })).rejects.toMatchObject({ code: "SANDBOX_UNAVAILABLE" });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
