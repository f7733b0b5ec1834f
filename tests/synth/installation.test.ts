import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { shippedPath } from "../../src/package-root.ts";
import { recordProgram } from "../../synth/proxy/record-program.ts";
import { stepPolicyById } from "../../synth/steps/registry.ts";
import {
  type InstallOptions,
  install,
  installed,
  requireInstalled,
  systemsCache,
} from "../../synth/systems/installation.ts";
import { findPython } from "../../synth/systems/interpreter.ts";
import { nodePackages, packageDifferences, pinnedPackages } from "../../synth/systems/packages.ts";
import type { ProgramSystem } from "../../synth/systems/program-system.ts";
import { programSystems, systems } from "../../synth/systems/registry.ts";
import { systemProgram } from "../../synth/systems/system-program.ts";
import { loadTape } from "../../synth/tape/loader.ts";
import { startServer } from "../models/loopback.ts";
import { completion, TOKEN } from "./proxy-setting.ts";

const TINY = join("..", "..", "tests", "synth", "tiny-systems");
const python: ProgramSystem = {
  id: "tiny-python",
  title: "one call",
  language: "python",
  folder: join(TINY, "python"),
  program: "program.py",
  install: { kind: "lock" },
  agents: ["solver"],
  lanes: "url",
  environment: { TINY: "yes" },
  preload: "off",
  masks: true,
  sideEffects: "none",
  stepPolicy: "per-call",
  timeLimit: 60,
};
const node: ProgramSystem = {
  ...python,
  id: "tiny-node",
  language: "node",
  folder: join(TINY, "node"),
  program: "program.mjs",
};
const checkout: ProgramSystem = {
  ...python,
  id: "tiny-checkout",
  install: {
    kind: "checkout",
    variable: "TINY_CHECKOUT",
    interpreter: "TINY_PYTHON",
    mark: "tiny.py",
    source: "github.com/tiny/tiny",
  },
};

let cache = "";
let env: Record<string, string | undefined> = {};
let waits: number[] = [];
beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), "rootstep-systems-"));
  env = { PATH: process.env.PATH, HOME: process.env.HOME, ROOTSTEP_CACHE: cache };
  waits = [];
});
afterEach(() => rmSync(cache, { recursive: true, force: true }));

const options = (changes: Partial<InstallOptions> = {}): InstallOptions => ({
  env,
  wait: async (ms) => void waits.push(ms),
  ...changes,
});

const hasPython = spawnSync("python3", ["-c", "import venv, ensurepip"]).status === 0;
const left = (): string[] => (existsSync(systemsCache(env)) ? readdirSync(systemsCache(env)) : []);

describe("where installations are", () => {
  it("$ROOTSTEP_CACHE, else $XDG_CACHE_HOME/rootstep, else ~/.cache/rootstep", () => {
    expect(systemsCache({ ROOTSTEP_CACHE: "/c", XDG_CACHE_HOME: "/x", HOME: "/h" })).toBe("/c/systems");
    expect(systemsCache({ ROOTSTEP_CACHE: "", XDG_CACHE_HOME: "/x", HOME: "/h" })).toBe("/x/rootstep/systems");
    expect(systemsCache({ HOME: "/h" })).toBe("/h/.cache/rootstep/systems");
  });

  it("what is missing is said with the command that mends it", () => {
    expect(installed(python, env)).toEqual({
      state: "missing",
      what: "its packages",
      do: "rootstep install tiny-python",
    });
    expect(() => requireInstalled(python, env)).toThrow(
      expect.objectContaining({
        code: "SYSTEM_NOT_INSTALLED",
        hint: expect.stringContaining("rootstep install tiny-python"),
      }),
    );
  });
});

describe.skipIf(!hasPython)("a Python system's packages", () => {
  it("are installed whole, once, in a folder named after the lock", { timeout: 300_000 }, async () => {
    const made = await install(python, options());
    expect(installed(python, env)).toEqual({ state: "installed", ...made });
    expect(made.folder).toMatch(/python-[0-9a-f]{12}$/u);
    expect(
      spawnSync(made.interpreter, ["-c", "import sys; print(sys.prefix != sys.base_prefix)"]).stdout.toString(),
    ).toBe("True\n");
    let printed = 0;
    expect(await install(python, options({ onOutput: () => printed++ }))).toEqual(made);
    expect(printed).toBe(0); // nothing was run
    expect(readdirSync(dirname(made.folder))).toHaveLength(1);
  });

  it("are installed by venv and pip where there is no uv", { timeout: 300_000 }, async () => {
    const bin = join(cache, "bin");
    mkdirSync(bin);
    const real = spawnSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" }).stdout.trim();
    symlinkSync(real, join(bin, "python3"));
    env = { ...env, PATH: bin, HOME: cache };
    const version = spawnSync(real, ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"], { encoding: "utf8" });
    const made = await install({ ...python, python: [version.stdout.trim()] }, options());
    expect(existsSync(made.interpreter)).toBe(true);
  });

  it("that cannot be had are tried three times, and nothing half done is left", async () => {
    const nowhere = "http://127.0.0.1:9/simple";
    env = {
      ...env,
      UV_DEFAULT_INDEX: nowhere,
      PIP_INDEX_URL: nowhere,
      UV_NO_CACHE: "1",
      PIP_RETRIES: "0",
      UV_HTTP_RETRIES: "0",
    };
    const failing = install({ ...python, folder: join(TINY, "wrong-pin") }, options());
    await expect(failing).rejects.toMatchObject({
      code: "INSTALL_FAILED",
      what: expect.stringContaining("failed 3 times"),
    });
    expect(waits).toEqual([2000, 4000]);
    expect(left()).toEqual([]);
  });

  it("that an installer left half done when it was killed are taken away", async () => {
    const made = await install(python, options());
    const dead = spawnSync(process.execPath, ["-e", ""]).pid;
    const abandoned = `${made.folder}.${dead}-abc123`;
    mkdirSync(abandoned);
    rmSync(join(made.folder, "installed"));
    await install(python, options());
    expect(left()).toHaveLength(1);
    expect(installed(python, env).state).toBe("installed");
  });

  it("in two processes at once end in one installation", { timeout: 300_000 }, async () => {
    const [one, two] = await Promise.all([install(python, options()), install(python, options())]);
    expect(one).toEqual(two);
    expect(left()).toHaveLength(1);
  });
});

describe("an interpreter", () => {
  it("is found behind a shim that runs nothing, among pyenv's versions, and by what it says of itself", async () => {
    const program = (path: string, text: string): string => {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
      return path;
    };
    const speaks = (path: string, version: string) => program(path, `echo ${path}; echo ${version}`);
    program(join(cache, "shims", "python9.8"), "echo pyenv: command not found >&2; exit 127");
    speaks(join(cache, "shims", "python3"), "9.7");
    speaks(join(cache, "pyenv", "versions", "9.80.1", "bin", "python3"), "9.80");
    const wanted = speaks(join(cache, "pyenv", "versions", "9.8.4", "bin", "python3"), "9.8");
    const where = { PATH: join(cache, "shims"), PYENV_ROOT: join(cache, "pyenv"), HOME: cache };
    expect(await findPython({ ...python, python: ["9.9", "9.8"] }, where)).toBe(wanted);
    expect(await findPython({ ...python, python: ["9.7"] }, where)).toBe(join(cache, "shims", "python3"));
  });

  it("that is nowhere on this machine is an error that says which one is wanted", async () => {
    const failing = install({ ...python, python: ["2.1", "2.0"] }, options());
    await expect(failing).rejects.toMatchObject({
      code: "INTERPRETER_MISSING",
      what: expect.stringContaining("Python 2.1 or 2.0"),
    });
    expect(left()).toEqual([]);
  });
});

describe("a system of the user's own checkout", () => {
  it("is there when its variable leads to it", async () => {
    expect(installed(checkout, env)).toMatchObject({ state: "missing", do: "set TINY_CHECKOUT to its folder" });
    await expect(install(checkout, options())).rejects.toMatchObject({ code: "SYSTEM_NOT_INSTALLED" });
    env = { ...env, TINY_CHECKOUT: cache };
    expect(installed(checkout, env)).toMatchObject({ state: "missing", what: `tiny.py in ${cache}` });
    writeFileSync(join(cache, "tiny.py"), "");
    expect(installed(checkout, env)).toEqual({ state: "installed", folder: cache, interpreter: "python3" });
    env = { ...env, TINY_PYTHON: "/their/python" };
    expect(installed(checkout, env)).toMatchObject({ interpreter: "/their/python" });
  });
});

describe("lists of packages", () => {
  it("of a lock are pins only", () => {
    const file = join(cache, "requirements.txt");
    writeFileSync(file, "# note\nOpen_AI==1.2.3\nhttpx==0.28.1  # why\nuvloop==1.0; sys_platform == 'linux'\n\n");
    expect(pinnedPackages(file)).toEqual({ httpx: "0.28.1", "open-ai": "1.2.3" });
    writeFileSync(file, "openai==1.2.3\nhttpx>=0.28\n");
    expect(() => pinnedPackages(file)).toThrow(expect.objectContaining({ code: "DATA_INVALID", where: `${file}:2` }));
  });

  it("are compared by name", () => {
    expect(packageDifferences({ a: "1", b: "2", c: "3" }, { a: "1", b: "3", d: "4" })).toEqual([
      "b 2 → 3",
      "c 3 → not there",
      "d not there → 4",
    ]);
  });

  it.each(programSystems.filter((system) => system.language === "python" && system.install.kind === "lock"))(
    "of $id name every package by its version",
    ({ folder }) => {
      const pins = pinnedPackages(shippedPath("synth", "systems", folder, "requirements.txt"));
      expect(Object.keys(pins).length).toBeGreaterThan(10);
    },
  );

  it("of a Node folder are those npm put there", () => {
    expect(nodePackages(shippedPath())).toMatchObject({ zod: expect.stringMatching(/^4\./u) });
    expect(nodePackages(cache)).toEqual({});
    mkdirSync(join(cache, "node_modules"));
    expect(() => nodePackages(cache)).toThrow(expect.objectContaining({ code: "FILE_MISSING" }));
  });
});

describe("the registry", () => {
  it("has each system once, with its files and notes", () => {
    const ids = [...systems, ...programSystems].map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { folder, program, stepPolicy } of programSystems) {
      expect(stepPolicyById(stepPolicy).id).toBe(stepPolicy);
      for (const file of [program, "NOTES.md"]) {
        expect(existsSync(shippedPath("synth", "systems", folder, file)), `${folder}/${file}`).toBe(true);
      }
    }
  });
});

describe.each([...(hasPython ? [python] : []), node])("the program of $id", (system) => {
  it("is told its task, model and address, and finds rootstep's helpers", async () => {
    const asked: { url: string; body: { model: string; messages: { content: string }[] } }[] = [];
    const server = await startServer(({ url, body }, response) => {
      asked.push({ url, body: JSON.parse(body) });
      response.end(completion("It is 1,234.5 in all"));
    });
    try {
      const found = await install(system, options());
      const task = { set: "gsm8k", id: "t", text: "How many?" };
      const {
        command,
        env: programEnv,
        packages,
      } = await systemProgram(system, found, {
        ...{ task, model: "m-1" },
        env: { ...env, PYTHONHASHSEED: "7", PYTHONPATH: "/theirs" },
      });
      expect(programEnv).toMatchObject({ TINY: "yes" });
      if (system.language === "python") {
        expect(programEnv).toMatchObject({ PYTHONHASHSEED: "0", PYTHONPATH: expect.not.stringContaining("/theirs") });
      }
      const out = join(cache, "tape");
      const report = await recordProgram({
        ...{ command, env: programEnv, out, run: `tiny-${process.pid}`, cwd: cache, timeLimitMs: 60_000 },
        ...{ token: TOKEN, upstream: new URL(`${server.url}/v1`), version: "0.0.0", now: () => new Date(0) },
        program: { system: system.id, task, model: "m-1", packages },
      });
      expect(report).toMatchObject({ exitCode: 0, answer: "1234.5", lanes: { solver: 1 } });
      expect(asked[0]?.body).toMatchObject({
        model: "m-1",
        messages: [
          { content: expect.stringContaining("You are the planner") },
          { content: "Problem: How many?\n\nSolve it one calculation at a time." },
        ],
      });
      const tape = loadTape(out);
      expect(tape.header.program).toEqual({ system: system.id, task, model: "m-1", packages });
      tape.bodies.close();
    } finally {
      await server.close();
    }
  });
});
