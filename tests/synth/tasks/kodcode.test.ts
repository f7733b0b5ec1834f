import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Task } from "../../../src/trajectory/schema.ts";
import { kodcode } from "../../../synth/tasks/kodcode/kodcode.ts";

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

  const load = async (record: object): Promise<Task> => {
    const file = join(folder, "kodcode.jsonl");
    writeFileSync(file, JSON.stringify(record));
    const [task] = await kodcode.load({ seed: 1, limit: 1, path: file });
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
});
