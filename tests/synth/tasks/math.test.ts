import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { verifyShipped } from "../../../src/formats/shipped-data.ts";
import { shippedPath } from "../../../src/package-root.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import { compareAnswers } from "../../../synth/tasks/math/equality.ts";
import { math, mathChains } from "../../../synth/tasks/math/math.ts";
import { boxedIn } from "../../../synth/tasks/math/normalize.ts";

describe("equality of answers", () => {
  it.each([
    // as written
    ["\\frac{3}{4}", "\\dfrac34"],
    ["\\frac 3 4", "\\tfrac{3}{4}"],
    ["$\\left( 1, 2 \\right)$", "(1,2)"],
    ["1{,}000", "1,\\!000"],
    ["1,000,000", "1000000"],
    ["30^\\circ", "30"],
    ["10\\%", "10"],
    ["\\$5.50", "5.50"],
    ["12\\text{ inches}", "12"],
    ["5\\text{ cm}^2", "5"],
    ["\\text{(C)}", "\\text{c}"],
    ["\\text{east}", "East"],
    ["x=3", "3"],
    ["f(x)=x^2", "x^2"],
    [".5", "0.5"],
    // as numbers
    ["\\frac34", "0.75"],
    ["\\sqrt{8}", "2\\sqrt2"],
    ["\\frac{-6+\\sqrt{72}}{2}", "-3+3\\sqrt{2}"],
    ["\\frac{\\sqrt3}{3}", "\\frac{1}{\\sqrt{3}}"],
    ["3\\frac12", "\\frac72"],
    ["e^{i\\pi}", "-1"],
    ["2^{10}", "1024"],
    ["\\log_2 8", "3"],
    ["44+32i", "32i+44"],
    ["5!", "120"],
    // as formulas
    ["x^2+2x+1", "(x+1)^2"],
    ["\\frac{x^2-1}{x-1}", "x+1"],
    ["\\sin^2 x+\\cos^2 x", "1"],
    ["\\pi r^2", "r^2\\pi"],
    ["y=2x+3", "2x-y+3=0"],
    // part by part
    ["1,2", "2, 1"],
    ["1 \\text{ and } 2", "2,1"],
    ["\\{1,2\\}", "\\{2,1\\}"],
    ["\\pm 3", "-3,3"],
    ["1\\pm\\sqrt2", "1-\\sqrt{2},1+\\sqrt{2}"],
    ["(-\\infty,\\frac{1}{2})", "(-\\infty,0.5)"],
    ["(0,1)\\cup(2,3)", "(2,3) \\cup (0,1)"],
    ["\\begin{pmatrix}1\\\\\\frac12\\end{pmatrix}", "\\begin{bmatrix}1\\\\0.5\\end{bmatrix}"],
  ])("%s is %s", (a, b) => {
    expect([compareAnswers(a, b), compareAnswers(b, a)]).toEqual(["equal", "equal"]);
  });

  it.each([
    ["0.333333", "\\frac13"],
    ["3.14159", "\\pi"],
    ["12345678901234567890", "12345678901234567891"],
    ["x^2+2x+1", "(x+1)^2+0.001"],
    ["44+32i", "44-32i"],
    ["(1,2)", "(2,1)"],
    ["[0,1)", "[0,1]"],
    ["(0,1)", "[0,1]"],
    ["1,2", "1,2,3"],
    ["1,1,2", "1,2,2"],
    ["\\{1\\}", "1"],
    ["\\begin{pmatrix}1&2\\end{pmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"],
    ["\\text{(A)}", "\\text{(B)}"],
    ["north", "south"],
    ["x", "y"],
    ["", "3"],
    ["\\text{none}", "0"],
    ["-3", "3"],
    ["y=2x+3", "y=3x+2"],
  ])("%s is not %s", (a, b) => {
    expect([compareAnswers(a, b), compareAnswers(b, a)]).toEqual(["different", "different"]);
  });

  it.each([
    ["9^{9^{9^9}}", "1"],
    ["100000000!", "1"],
    ["(((((((((9!)!)!)!)!)!)!)!)!)", "1"],
    ["10^{1000000000}", "1"],
    ["\\int_0^1 x\\,dx", "\\frac12"],
    ["\\sum_{k=1}^{10^9} k", "1"],
    ["\\prod_{k=1}^{1000000}k", "1"],
    [`${"(".repeat(5000)}1${")".repeat(5000)}`, "1"],
    [`1${"+1".repeat(5000)}`, "5001"],
    ["\\frac{", "3"],
    ["\\frac{1}{0}", "3"],
    ["\\newcommand{\\x}{\\x\\x}\\x", "3"],
    ["\\binom{5}{2}", "10"],
  ])("%# stays undecided, soon", (a, b) => {
    expect(compareAnswers(a, b)).toBe("undecided");
  });

  it("never calls an answer equal for saying every answer", () => {
    for (const hostile of [
      "x",
      "\\text{any}",
      "1,2,3,4,5,6,7,8,9",
      "\\pm 7",
      "7 or 8",
      "7=7",
      "x=x",
      "7\\text{ or }8",
      "\\infty",
      "0/0",
      "NaN",
    ]) {
      expect([hostile, compareAnswers(hostile, "7")]).not.toEqual([hostile, "equal"]);
    }
  });

  it("takes the last box, braces matched", () => {
    expect(boxedIn("so \\boxed{1} and \\boxed{\\frac{1}{2}}.")).toBe("\\frac{1}{2}");
    expect(boxedIn("$\\boxed 7$")).toBe("7");
    expect(boxedIn("\\boxed{1")).toBeUndefined();
    expect(boxedIn("none")).toBeUndefined();
  });
});

describe("the task set", () => {
  it("ships 240 templated problems whose own answers succeed, 120 of them chains of calculations", async () => {
    await verifyShipped({ path: shippedPath("data", "math") });
    const tasks = await math.load({ seed: 1, limit: 1000 });
    expect(tasks).toHaveLength(240);
    for (const task of tasks) {
      expect(await math.check(task, task.referenceAnswer)).toMatchObject({ success: true });
      expect(await math.check(task, task.referenceSolution)).toMatchObject({ success: true });
      expect(await math.check(task, `${task.referenceAnswer}+1`)).toMatchObject({ success: false });
    }
    expect(await mathChains.load({ seed: 1, limit: 1000 })).toHaveLength(120);
  });

  it("counts no undecided comparison as success, and says that it was one", async () => {
    const [task] = await math.load({ seed: 1, limit: 1 });
    expect(await math.check(task as Task, "\\int_0^1 x")).toMatchObject({
      success: false,
      detail: expect.stringContaining("undecided"),
    });
    expect(await math.check(task as Task, undefined)).toMatchObject({ success: false });
  });

  it("reads a copy of MATH by folder, in order of number, and MATH-500 as JSONL", async () => {
    const folder = mkdtempSync(join(tmpdir(), "rootstep-math-"));
    const problem = (solution: string) =>
      JSON.stringify({ problem: "Find it.", level: "Level 5", type: "Algebra", solution });
    try {
      mkdirSync(join(folder, "test", "algebra"), { recursive: true });
      writeFileSync(join(folder, "test", "algebra", "10.json"), problem("It is $\\boxed{10}$."));
      writeFileSync(join(folder, "test", "algebra", "2.json"), problem("It is $\\boxed{\\frac{1}{2}}$."));
      const tasks = await math.load({ seed: 1, limit: 9, path: folder });
      expect(tasks.map(({ id, referenceAnswer }) => [id, referenceAnswer])).toEqual([
        ["math-test-algebra-2", "\\frac{1}{2}"],
        ["math-test-algebra-10", "10"],
      ]);
      const lines = join(folder, "math500.jsonl");
      writeFileSync(
        lines,
        JSON.stringify({
          problem: "P",
          solution: "S",
          answer: "3",
          subject: "Algebra",
          level: 2,
          unique_id: "test/a/1.json",
        }),
      );
      expect(await math.load({ seed: 1, limit: 9, path: lines })).toMatchObject([
        { id: "math-test-a-1", referenceAnswer: "3" },
      ]);
      writeFileSync(join(folder, "test", "algebra", "3.json"), problem("no box"));
      await expect(math.load({ seed: 1, limit: 9, path: folder })).rejects.toMatchObject({ code: "DATA_INVALID" });
      mkdirSync(join(folder, "empty"));
      await expect(math.load({ seed: 1, limit: 9, path: join(folder, "empty") })).rejects.toMatchObject({
        code: "FILE_MISSING",
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
