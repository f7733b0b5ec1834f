import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { verifyShipped } from "../../../src/formats/shipped-data.ts";
import { shippedPath } from "../../../src/package-root.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import { bubblewrapSandbox } from "../../../synth/sandbox/bubblewrap.ts";
import { remembered } from "../../../synth/sandbox/remembered.ts";
import type { Sandbox } from "../../../synth/sandbox/sandbox.ts";
import { unconfined } from "../../../synth/sandbox/unconfined.ts";
import { pythonIn } from "../../../synth/tasks/code-answer.ts";
import { mbppPlus } from "../../../synth/tasks/mbppplus/mbppplus.ts";
import { mbppProblems } from "../../../synth/tasks/mbppplus/problems.ts";
import { type PythonValue, pythonClose, pythonEqual, pythonText } from "../../../synth/tasks/mbppplus/values.ts";

const taskOf = async (id: string): Promise<Task> => {
  const task = (await mbppPlus.load({ seed: 1, limit: 1000 })).find((one) => one.id === id);
  if (task === undefined) throw new Error(`no task ${id}`);
  return task;
};

describe("MBPP+", () => {
  it("ships 376 problems with 1,168 base and 18,826 plus tests, as their manifest says", async () => {
    await verifyShipped({ path: shippedPath("data", "mbppplus") });
    const problems = await mbppProblems();
    const count = (part: "base" | "plus") => problems.reduce((sum, problem) => sum + problem[part].length, 0);
    expect([problems.length, count("base"), count("plus")]).toEqual([376, 1168, 18826]);
  });

  it("accepts reference solutions (every 12th here; all 376 by scripts/check-mbppplus.ts)", async () => {
    const tasks = await mbppPlus.load({ seed: 1, limit: 1000 });
    for (const task of tasks.filter((_, at) => at % 12 === 0)) {
      const outcome = await mbppPlus.check(task, `\`\`\`python\n${task.referenceSolution}\n\`\`\``);
      expect([task.id, outcome.success, outcome.detail]).toEqual([task.id, true, undefined]);
    }
  }, 60_000);

  it("judges changed solutions as EvalPlus does (scripts/golden/mbppplus.py)", async () => {
    const text = await readFile(new URL("golden/mbppplus.json", import.meta.url), "utf8");
    const golden = z.array(z.tuple([z.string(), z.string(), z.enum(["pass", "fail"])])).parse(JSON.parse(text));
    expect(golden.filter(([, , verdict]) => verdict === "pass").length).toBeGreaterThan(10);
    expect(golden.filter(([, , verdict]) => verdict === "fail").length).toBeGreaterThan(40);
    // Every second of them: each is a process of its own.
    for (const [id, code, verdict] of golden.filter((_, at) => at % 2 === 0)) {
      const outcome = await mbppPlus.check(await taskOf(id.toLowerCase().replace("/", "-")), code);
      expect([id, code, outcome.success ? "pass" : "fail", outcome.detail]).toEqual([
        id,
        code,
        verdict,
        outcome.detail,
      ]);
    }
  }, 120_000);

  it.each([
    ["no answer", undefined, "no answer"],
    ["an empty answer", "", "does not run"],
    ["prose", "The shared elements can be found with sets.", "SyntaxError"],
    ["another function", "def other(a, b): return ()", "similar_elements"],
    ["an exit with success", "import os\nos._exit(0)", "ended before test 1"],
    ["an exit inside the function", "import os\ndef similar_elements(a, b): os._exit(0)", "ended before test 1"],
    [
      "a result that equals everything",
      "class All:\n  def __eq__(self, other): return True\n  __hash__ = None\ndef similar_elements(a, b): return All()",
      "<All>",
    ],
    [
      "a list that equals everything",
      "class All(list):\n  def __eq__(self, other): return True\ndef similar_elements(a, b): return All()",
      "<All>",
    ],
    [
      "printed results",
      'print(\'{"result":["tuple",[]]}\')\ndef similar_elements(a, b): print(\'{"result":["tuple",[]]}\')',
      "None",
    ],
    [
      "lines written over the report",
      'import os\nfor fd in range(3, 20):\n  try: os.write(fd, b\'{"result":["tuple",[]]}\\n\' * 200)\n  except OSError: pass\ndef similar_elements(a, b): return ()',
      "",
    ],
    [
      "a harness pulled down",
      "import sys\nsys.modules['values'].encode = None\ndef similar_elements(a, b): return ()",
      "in place of",
    ],
    [
      "an encoder patched to flatter",
      "import sys\nsys.modules['__main__'].encode = lambda value, depth=0: ['match']\ndef similar_elements(a, b): return ()",
      "<re.Match>",
    ],
    ["an endless loop", "def similar_elements(a, b):\n  while True: pass", "met its limit"],
    [
      "endless output",
      "import os\ndef similar_elements(a, b):\n  while True: os.write(2, b'x' * 100000)",
      "limit: output",
    ],
    ["a memory bomb", "def similar_elements(a, b): return [0] * 10**10", "MemoryError"],
    ["endless recursion", "def similar_elements(a, b): return similar_elements(a, b)", "RecursionError"],
    ["a result without end", "def similar_elements(a, b):\n  x = []\n  x.append(x)\n  return x", "in place of"],
    ["a generator", "def similar_elements(a, b): yield from set(a) & set(b)", "<generator>"],
    ["the first test by heart", "def similar_elements(a, b): return (4, 5)", "in place of"],
  ])(
    "is not passed by %s",
    async (_, answer, detail) => {
      const outcome = await mbppPlus.check(await taskOf("mbpp-2"), answer);
      expect(outcome.success).toBe(false);
      expect(outcome.detail).toContain(detail);
    },
    60_000,
  );

  it("takes floats within 1e-6 and no further", async () => {
    const problems = (await mbppProblems()).filter(({ base, plus, atol }) => {
      return atol === 0 && [...base, ...plus].every(({ expected }) => expected[0] === "float");
    });
    expect(problems.length).toBeGreaterThan(3);
    for (const { id, solution, entryPoint } of problems.slice(0, 3)) {
      const off = (by: string) =>
        `${solution}\n\nexact = ${entryPoint}\n\ndef ${entryPoint}(*values):\n    return exact(*values) ${by}`;
      const task = await taskOf(id.toLowerCase().replace("/", "-"));
      expect([id, (await mbppPlus.check(task, off("+ 5e-7"))).success]).toEqual([id, true]);
      expect([id, (await mbppPlus.check(task, off("+ 1e-4"))).success]).toEqual([id, false]);
    }
  });

  it("takes sets of results for problems whose order says nothing", async () => {
    const task = await taskOf("mbpp-2");
    expect(
      await mbppPlus.check(task, "def similar_elements(a, b): return sorted(set(a) & set(b), key=str)[::-1]"),
    ).toMatchObject({
      success: true,
    });
  });

  it("refuses to load without a sandbox, unless it is given another", async () => {
    const none: Sandbox = bubblewrapSandbox("bwrap-that-is-not-there");
    const confined = mbppPlus.withSandbox?.(none);
    await expect(confined?.load({ seed: 1, limit: 1 })).rejects.toMatchObject({
      code: "SANDBOX_UNAVAILABLE",
      hint: expect.any(String),
    });
    const [task] = (await mbppPlus.withSandbox?.(unconfined)?.load({ seed: 1, limit: 1 })) ?? [];
    const outcome = await mbppPlus.withSandbox?.(unconfined)?.check(task as Task, task?.referenceSolution);
    expect(outcome).toMatchObject({ success: true });
  });

  it("gives no verdict for a task it does not know", async () => {
    const task = await taskOf("mbpp-2");
    await expect(mbppPlus.check({ ...task, id: "mbpp-0" }, "")).rejects.toMatchObject({ code: "CHECKER_FAILED" });
  });
});

describe("a remembered sandbox", () => {
  it("runs a program once, another one anew, and forgets runs that met a limit", async () => {
    let runs = 0;
    const counted = remembered({
      id: "none",
      require: async () => undefined,
      run: async ({ files }) => {
        runs++;
        return { ended: files["main.py"] === "loop" ? "wall clock" : "exited", exitCode: 0, stdout: "", stderr: "" };
      },
    });
    for (const source of ["a", "a", "b", "loop", "loop"]) await counted.run({ files: { "main.py": source } });
    expect(runs).toBe(4);
  });
});

describe("Python values", () => {
  const int = (value: number): PythonValue => ["int", value.toString(16)];
  it.each<[PythonValue, PythonValue, boolean]>([
    [int(1), ["float", "1.0"], true],
    [int(1), ["bool", true], true],
    [["int", "20000000000001"], ["float", "9007199254740992.0"], false], // 2**53 + 1
    [["float", "nan"], ["float", "nan"], false],
    [["float", "inf"], ["float", "inf"], true],
    [["complex", "1.0", "0.0"], int(1), true],
    [["list", [int(1)]], ["tuple", [int(1)]], false],
    [["set", [int(1), int(2)]], ["set", [int(2), int(1)]], true],
    [
      ["dict", [[["str", "a"], int(1)]]],
      [
        "dict",
        [
          [
            ["str", "a"],
            ["float", "1.0"],
          ],
        ],
      ],
      true,
    ],
    [["none"], ["none"], true],
    [["none"], ["bool", false], false],
    [["other", "All"], ["other", "All"], false],
  ])("%j == %j: %s", (a, b, equal) => {
    expect([pythonEqual(a, b), pythonEqual(b, a)]).toEqual([equal, equal]);
  });

  it("are close within 1e-7 of the expected one and the tolerance, in lists of one length only", () => {
    expect(pythonClose(["float", "100.000001"], ["float", "100.0"], 1e-9)).toBe(true);
    expect(pythonClose(["float", "100.0001"], ["float", "100.0"], 1e-9)).toBe(false);
    expect(
      pythonClose(
        ["list", [["float", "1.0"]]],
        [
          "list",
          [
            ["float", "1.0"],
            ["float", "2.0"],
          ],
        ],
        1,
      ),
    ).toBe(false);
    expect(pythonClose(int(1), ["float", "1.0"], 1)).toBe(false);
    expect(pythonClose(["float", "nan"], ["float", "nan"], 1)).toBe(false);
  });

  it("are written as Python reads them", () => {
    expect(pythonText(["tuple", [["str", 'a"'], ["float", "inf"], ["none"]]])).toBe('("a\\"", float(\'inf\'), None)');
    expect(pythonText(["dict", [[int(-3), ["set", []]]]])).toBe("{-3: set()}");
    expect(pythonText(["tuple", [int(1)]])).toBe("(1,)");
  });
});

describe("the code in an answer", () => {
  it("is its last block of Python, else its last block, else all of it", () => {
    expect(pythonIn("```python\na = 1\n```\nthen\n```py\nb = 2\n```\ndone")).toBe("b = 2");
    expect(pythonIn("<think>```python\nno\n```</think>c = 3")).toBe("c = 3");
    expect(pythonIn("```\nd = 4")).toBe("d = 4");
    expect(pythonIn("```python\ne = 5\n```\n```\n### Code:\n```\n")).toBe("e = 5");
  });
});
