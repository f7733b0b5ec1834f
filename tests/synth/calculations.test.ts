import { describe, expect, it } from "vitest";
import { calculationsOf, formatCalculation, parseCalculation } from "../../synth/tasks/calculations.ts";
import { gsm8k } from "../../synth/tasks/gsm8k.ts";
import { checkNumeric, lastNumber } from "../../synth/tasks/numeric-checker.ts";

const written = (solution: string): string[] | undefined => calculationsOf(solution)?.map(formatCalculation);

describe("calculations of a worked solution", () => {
  it.each([
    ["<<16-3-4=9>>9 eggs, <<9*2=18>>18\n#### 18", ["16 - 3", "previous - 4", "previous * 2"]],
    ["<<2/2=1>>1\n<<2+1=3>>3\n#### 3", ["2 / 2", "previous + 2"]],
    ["<<(3+5)*2=16>>16\n#### 16", ["3 + 5", "previous * 2"]],
    ["<<4*5=20>>20 <<3*2=6>>6 <<20+6=26>>26\n#### 26", ["4 * 5", "3 * 2", "previous + result 1"]],
    ["<<80000*1.5=120000>>120,000\n#### 120,000", ["80000 * 1.5"]],
    ["<<10-2*3=4>>4\n#### 4", ["2 * 3", "10 - previous"]],
  ])("splits %s", (solution, expected) => {
    expect(written(solution)).toEqual(expected);
  });

  it.each([
    ["no annotation", "it is 3\n#### 3"],
    ["an annotation that does not come out", "<<2+2=5>>5\n#### 5"],
    ["a chain that ends elsewhere than in the answer", "<<2+2=4>>4\n#### 7"],
    ["division by zero", "<<2/0=0>>\n#### 0"],
    ["words in it", "<<x+2=4>>4\n#### 4"],
  ])("refuses %s", (_, solution) => {
    expect(calculationsOf(solution)).toBeUndefined();
  });

  it("reads back what it writes", () => {
    for (const text of ["16 - 3", "previous * 0.5", "result 2 / previous", "-4 + 12"]) {
      const calculation = parseCalculation(text);
      expect(calculation && formatCalculation(calculation)).toBe(text);
    }
    expect(parseCalculation("16 -3")).toBeUndefined();
  });
});

describe("GSM8K", () => {
  it("gives 1,368 usable problems of the 1,519 shipped, as counted by an independent program", async () => {
    const tasks = await gsm8k.load({ seed: 0, limit: 10_000 });
    // Counted in Python: eval() of every annotation without unary signs, the last one with an operator against the answer.
    expect(tasks).toHaveLength(1368);
    expect(new Set(tasks.map((task) => task.id)).size).toBe(tasks.length);
  });
});

describe("numeric checker", () => {
  const task = { id: "t", text: "", source: "test", groupId: "t", referenceAnswer: "1,200" };
  it("takes the last number, without grouping commas", () => {
    expect(lastNumber("about 3, in all $1,200.")).toBe(1200);
    expect(lastNumber("none")).toBeUndefined();
    expect(checkNumeric(task, "it is 1200").success).toBe(true);
    expect(checkNumeric(task, "12").success).toBe(false);
  });
  it("says when there was no answer", () => {
    expect(checkNumeric(task, undefined)).toMatchObject({ success: false, detail: "the run gave no answer" });
  });
});
