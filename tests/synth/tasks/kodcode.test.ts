import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Task } from "../../../src/trajectory/schema.ts";
import { bubblewrapSandbox } from "../../../synth/sandbox/bubblewrap.ts";
import { pythonPath } from "../../../synth/sandbox/python.ts";
import type { Sandbox } from "../../../synth/sandbox/sandbox.ts";
import { kodcode, needsPytest } from "../../../synth/tasks/kodcode/kodcode.ts";
import type { RefusedProblem } from "../../../synth/tasks/task-set.ts";

/** Whether the Python of the sandbox has pytest on this machine: asked of Python itself, outside the code under test. */
const HAS_PYTEST = spawnSync(pythonPath(), ["-s", "-c", "import pytest"]).status === 0;

const RECORD = {
  question_id: "Leetcode_1_I",
  question: "Write `double(n)`.",
  solution: "def double(n):\n    return 2 * n",
  test: "from solution import double\n\ndef test_small():\n    assert double(2) == 4\n\ndef test_zero():\n    assert double(0) == 0\n",
  subset: "Leetcode",
  style: "instruct",
};

describe("KodCode", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "rootstep-kodcode-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const saved = (...records: object[]): string => {
    const file = join(folder, "kodcode.jsonl");
    writeFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(""));
    return file;
  };
  const load = async (record: object): Promise<Task> => {
    const [task] = await kodcode.load({ seed: 1, limit: 1, path: saved(record) });
    if (task === undefined) throw new Error("no task");
    return task;
  };

  it("says where to get it", async () => {
    await expect(kodcode.load({ seed: 1, limit: 1 })).rejects.toMatchObject({
      code: "DATA_NOT_SHIPPED",
      what: expect.stringContaining("huggingface.co/datasets/KodCode"),
    });
  });

  it("runs its tests on an answer", async () => {
    const task = await load(RECORD);
    expect(await kodcode.check(task, `Here it is:\n\`\`\`python\n${RECORD.solution}\n\`\`\``)).toMatchObject({
      success: true,
    });
    expect(await kodcode.check(task, "def double(n):\n    return n + 2")).toMatchObject({
      success: false,
      detail: "test_zero: AssertionError: ",
    });
  });

  it.each([
    ["nothing", "", "ImportError"],
    ["an exit with success", "import os\nos._exit(0)", "ended before the tests"],
    ["an exit in the function", "import os\ndef double(n): os._exit(0)", "ended before the last test"],
    ["a system exit", "import sys\ndef double(n): sys.exit(0)", "SystemExit"],
    ["printed success", "print('{\"tests\": 2}')\ndef double(n): return 1", "AssertionError"],
    ["a module that is not there", "import numpyy\ndef double(n): return 2 * n", "needs the module numpyy"],
    ["prose", "I would double the number.", "SyntaxError"],
  ])("is not passed by %s", async (_, answer, detail) => {
    const outcome = await kodcode.check(await load(RECORD), answer);
    expect(outcome).toMatchObject({ success: false, detail: expect.stringContaining(detail) });
  });

  it("gives no verdict where the tests are none, or need what is not there", async () => {
    const without = await load({ ...RECORD, test: "x = 1" });
    await expect(kodcode.check(without, RECORD.solution)).rejects.toMatchObject({ code: "CHECKER_FAILED" });
  });

  it.each([
    ["plain functions", RECORD.test, false],
    ["pytest imported", "import pytest\ndef test_a(): pass", true],
    ["a fixture of pytest's own", "def test_a(tmp_path): pass", true],
    ["a class of tests", "class TestA:\n    def test_a(self): pass", true],
    [
      "a word that begins like it",
      "from solution import double\ndef test_a():\n    assert double(1) == 2 # contest",
      false,
    ],
  ])("tells whether tests need pytest: %s", (_, test, needs) => expect(needsPytest(test)).toBe(needs));

  const PYTEST = `import pytest
from solution import double

@pytest.fixture
def two():
    return 2

@pytest.mark.parametrize("given, wanted", [(0, 0), (3, 6), (-1, -2)])
def test_values(given, wanted):
    assert double(given) == wanted

def test_fixture(two, tmp_path):
    (tmp_path / "out").write_text(str(double(two)))
    assert (tmp_path / "out").read_text() == "4"

def test_raises():
    with pytest.raises(TypeError):
        double(None)

@pytest.mark.xfail(strict=True)
def test_known():
    assert double(2) == 5

class TestMore:
    def test_large(self, capsys):
        assert double(10**6) == 2 * 10**6
`;

  it.runIf(HAS_PYTEST)("runs pytest itself on fixtures, parameters, raises, marks and classes", async () => {
    const task = await load({ ...RECORD, test: PYTEST });
    const of = (code: string) => kodcode.check(task, code);
    expect(await of(RECORD.solution)).toMatchObject({ success: true });
    expect(await of("def double(n):\n    return n * n")).toMatchObject({
      success: false,
      detail: expect.stringMatching(/^test_values\[3-6\]: assert 9 == 6/u),
    });
    expect(await of("def double(n):\n    return 0 if n is None else 2 * n")).toMatchObject({
      success: false,
      detail: expect.stringMatching(/^test_raises: .*DID NOT RAISE/u),
    });
    // An expected failure that passes is one.
    expect(await of("def double(n):\n    return 5 if n == 2 else 2 * n")).toMatchObject({ success: false });
  });

  it.runIf(HAS_PYTEST).each([
    ["an exit with success", "import os\nos._exit(0)", "ended before the tests"],
    ["an exit in the function", "import os\ndef double(n): os._exit(0)", "ended before the last test"],
    ["a system exit", "import sys\ndef double(n): sys.exit(0)", "SystemExit"],
    ["a skip of its own", "import pytest\ndef double(n): pytest.skip('no')", "was skipped"],
    [
      "an early end that it asks for",
      "import pytest\ndef double(n): pytest.exit('done', returncode=0)",
      "ended before",
    ],
    ["a module that is not there", "import numpyy\ndef double(n): return 2 * n", "needs the module numpyy"],
    ["prose", "I would double the number.", "SyntaxError"],
    ["nothing", "", "ImportError"],
  ])("under pytest is not passed by %s", async (_, answer, detail) => {
    const outcome = await kodcode.check(await load({ ...RECORD, test: PYTEST }), answer);
    expect(outcome).toMatchObject({ success: false, detail: expect.stringContaining(detail) });
  });

  it("refuses the problems that need pytest where the sandbox's Python has none, says so of each, and takes others", async () => {
    const real = bubblewrapSandbox();
    // The real sandbox with the real Python, from which pytest is hidden.
    const hidden: Sandbox = {
      ...real,
      run: ({ files, ...rest }, signal) => {
        const main = `import sys\nsys.modules["pytest"] = None\n${files["main.py"]}`;
        return real.run({ ...rest, files: { ...files, "main.py": main } }, signal);
      },
    };
    const set = kodcode.withSandbox?.(hidden) ?? kodcode;
    const refused: RefusedProblem[] = [];
    const path = saved(
      { ...RECORD, test: PYTEST },
      { ...RECORD, question_id: "second" },
      { ...RECORD, question_id: "third", test: PYTEST },
    );
    const tasks = await set.load({ seed: 1, limit: 5, path, onRefused: (problem) => refused.push(problem) });
    expect(tasks.map(({ id }) => id)).toEqual(["kodcode-second"]);
    expect(refused).toEqual(
      ["kodcode-Leetcode_1_I", "kodcode-third"].map((id) => {
        return { id, why: "its tests need pytest, which the sandbox's Python does not have" };
      }),
    );
    // A host whose pytest has gone since gives no verdict, and says what to install.
    const task = { ...(tasks[0] as Task), extra: { kind: "code", test: PYTEST } };
    await expect(set.check(task, RECORD.solution)).rejects.toMatchObject({ code: "CHECKER_FAILED" });
  });
});
