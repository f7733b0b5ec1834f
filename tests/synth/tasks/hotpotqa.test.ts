import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { verifyShipped } from "../../../src/formats/shipped-data.ts";
import { shippedPath } from "../../../src/package-root.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import { hotpotqa, searchableOf } from "../../../synth/tasks/hotpotqa/hotpotqa.ts";
import { exactMatch, f1Score, normalizeAnswer } from "../../../synth/tasks/hotpotqa/score.ts";

/** scripts/golden/hotpotqa.py: the official script's scores, in Python. */
const goldenSchema = z.object({
  cases: z.array(z.tuple([z.string(), z.string(), z.boolean(), z.number()])),
  em: z.number(),
  f1: z.number(),
});

describe("HotpotQA's scores", () => {
  it("are those of the official script on 810 answers", async () => {
    const text = await readFile(new URL("golden/hotpotqa.json", import.meta.url), "utf8");
    const golden = goldenSchema.parse(JSON.parse(text));
    expect(golden.cases).toHaveLength(810);
    let [em, f1] = [0, 0];
    for (const [answer, truth, match, score] of golden.cases) {
      expect([answer, exactMatch(answer, truth)]).toEqual([answer, match]);
      expect(f1Score(answer, truth).f1).toBeCloseTo(score, 12);
      em += Number(exactMatch(answer, truth));
      f1 += f1Score(answer, truth).f1;
    }
    expect(em).toBe(golden.em);
    expect(f1).toBeCloseTo(golden.f1, 9);
  });

  it("fold case, articles, punctuation and white space", () => {
    expect(normalizeAnswer("  The U.S.  Army\n(of) an Owl ")).toBe("us army of owl");
    expect(f1Score("yes, they are", "yes").f1).toBe(0);
  });
});

describe("the task set", () => {
  it("ships 100 questions with ten paragraphs each, as their manifest says, under 1 MB", async () => {
    const manifest = await verifyShipped({ path: shippedPath("data", "hotpotqa") });
    expect(manifest.files["dev-distractor-100.jsonl"]?.bytes).toBeLessThan(1_000_000);
    const tasks = await hotpotqa.load({ seed: 1, limit: 1000 });
    expect(tasks).toHaveLength(100);
    for (const task of tasks) {
      const { paragraphs, supporting } = searchableOf(task);
      expect(paragraphs).toHaveLength(10);
      const titles = paragraphs.map(({ title }) => title);
      for (const { title } of supporting) expect(titles).toContain(title);
      expect(await hotpotqa.check(task, task.referenceAnswer)).toMatchObject({ success: true, detail: "F1 1.000" });
    }
  });

  it.each([undefined, "", "yes", "a an the", "x".repeat(1_000_000), "the the the", "\u0000", "__proto__"])(
    "judges the hostile answer %#",
    async (answer) => {
      const tasks = await hotpotqa.load({ seed: 1, limit: 100 });
      const task = tasks.find(({ referenceAnswer }) => referenceAnswer !== "yes") as Task;
      expect(await hotpotqa.check(task, answer)).toMatchObject({ success: false });
    },
  );

  it("gives no credit for naming all the candidates", async () => {
    for (const task of await hotpotqa.load({ seed: 1, limit: 100 })) {
      const all = searchableOf(task)
        .paragraphs.flatMap(({ title, sentences }) => [title, ...sentences])
        .join(" ");
      expect((await hotpotqa.check(task, all)).success).toBe(false);
    }
  });

  it("reads the official file, one array, and says where a record is wrong", async () => {
    const folder = mkdtempSync(join(tmpdir(), "rootstep-hotpot-"));
    const record = {
      _id: "q1",
      question: "Who?",
      answer: "Bo",
      supporting_facts: [["A", 0]],
      context: [["A", ["Bo did."]]],
    };
    try {
      const file = join(folder, "hotpot_dev_distractor_v1.json");
      writeFileSync(file, JSON.stringify([record]));
      const [task] = await hotpotqa.load({ seed: 1, limit: 5, path: file });
      expect(task).toMatchObject({ id: "hotpotqa-q1", text: "Who?", referenceAnswer: "Bo" });
      writeFileSync(file, JSON.stringify([record, { ...record, context: [] }]));
      await expect(hotpotqa.load({ seed: 1, limit: 5, path: file })).rejects.toMatchObject({
        code: "DATA_INVALID",
        where: expect.stringContaining("record 1"),
      });
      await expect(hotpotqa.load({ seed: 1, limit: 5, path: join(folder, "none.json") })).rejects.toMatchObject({
        code: "FILE_MISSING",
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
