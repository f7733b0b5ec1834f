import { readFile } from "node:fs/promises";
import { z } from "zod";
import { RootstepError } from "../../../src/errors.ts";
import { onFile } from "../../../src/formats/files.ts";
import { parseJsonBytes } from "../../../src/formats/json-bytes.ts";
import { readJsonLines } from "../../../src/formats/jsonl.ts";
import { parseRecord } from "../../../src/formats/record-error.ts";
import { shippedPath } from "../../../src/package-root.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import type { TaskSet } from "../task-set.ts";
import { exactMatch, f1Score } from "./score.ts";

const recordSchema = z.object({
  _id: z.string().min(1),
  question: z.string(),
  answer: z.string(),
  type: z.string().optional(),
  level: z.string().optional(),
  supporting_facts: z.array(z.tuple([z.string(), z.number().int().nonnegative()])),
  context: z.array(z.tuple([z.string(), z.array(z.string())])).min(1),
});

const paragraphSchema = z.object({ title: z.string(), sentences: z.array(z.string()) });
export type Paragraph = z.infer<typeof paragraphSchema>;

const extraSchema = z.object({
  paragraphs: z.array(paragraphSchema),
  /** Title and sentence that the answer follows from, in order. */
  supporting: z.array(z.object({ title: z.string(), sentence: z.number() })),
});

/**
 * HotpotQA, distractor setting (Yang et al., 2018): a question over two of ten paragraphs. Ω is exact match as in the
 * official script; the F1 is in the detail. 100 questions of the development set ship; a copy of
 * hotpot_dev_distractor_v1.json (or one record per line) is read from `path`.
 */
export const hotpotqa: TaskSet = {
  id: "hotpotqa",
  title: "HotpotQA: questions over two of ten Wikipedia paragraphs (100 of the development set)",
  source: "hotpotqa/hotpot, development set, distractor setting",
  licence: "CC BY-SA 4.0",
  async load({ limit, path }) {
    const tasks: Task[] = [];
    const file = path ?? shippedPath("data", "hotpotqa", "dev-distractor-100.jsonl");
    for await (const { where, value } of recordsIn(file)) {
      if (tasks.length >= limit) break;
      tasks.push(taskOf(parseRecord(recordSchema, value, where)));
    }
    return tasks;
  },
  check(task, answer) {
    const checker = "hotpotqa-exact-match";
    if (answer === undefined) return { success: false, checker, detail: "the run gave no answer" };
    const truth = task.referenceAnswer;
    if (truth === undefined) throw new RootstepError("CHECKER_FAILED", { what: `task ${task.id} has no answer` });
    const { f1 } = f1Score(answer, truth);
    return { success: exactMatch(answer, truth), checker, answer, detail: `F1 ${f1.toFixed(3)}` };
  },
};

async function* recordsIn(file: string): AsyncGenerator<{ readonly where: string; readonly value: unknown }> {
  if (!file.endsWith(".json")) {
    for await (const { line, value } of readJsonLines(file)) yield { where: `${file}:${line}`, value };
    return;
  }
  const whole = parseJsonBytes(await onFile(file, () => readFile(file)), file);
  const records = parseRecord(z.array(z.unknown()), whole, file);
  for (const [index, value] of records.entries()) yield { where: `${file}, record ${index}`, value };
}

function taskOf(record: z.infer<typeof recordSchema>): Task {
  const id = `hotpotqa-${record._id}`;
  return {
    id,
    text: record.question,
    referenceAnswer: record.answer,
    source: "hotpotqa",
    groupId: id,
    extra: {
      kind: "search",
      type: record.type,
      level: record.level,
      paragraphs: record.context.map(([title, sentences]) => ({ title, sentences })),
      supporting: record.supporting_facts.map(([title, sentence]) => ({ title, sentence })),
    },
  };
}

/** What a task offers to search, and where its answer stands. @throws RootstepError CHECKER_FAILED without paragraphs */
export function searchableOf(task: Task): z.infer<typeof extraSchema> {
  const extra = extraSchema.safeParse(task.extra);
  if (extra.success) return extra.data;
  throw new RootstepError("CHECKER_FAILED", {
    what: `task ${task.id} has no paragraphs to search`,
    hint: "The searcher works on HotpotQA in the distractor setting: tasks.set hotpotqa.",
  });
}
