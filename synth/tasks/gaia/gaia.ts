import { z } from "zod";
import { RootstepError } from "../../../src/errors.ts";
import { parseRecord } from "../../../src/formats/record-error.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import { ownRecords } from "../own-copy/records.ts";
import type { TaskSet } from "../task-set.ts";
import { gaiaMatch } from "./score.ts";

const recordSchema = z.object({
  task_id: z.string().min(1),
  Question: z.string(),
  Level: z.union([z.string(), z.number(), z.bigint()]).transform(Number),
  "Final answer": z.string(),
  /** Attachment beside the metadata; empty for most. */
  file_name: z.string().nullish(),
});

const ABOUT = {
  name: "GAIA",
  getItFrom:
    "https://huggingface.co/datasets/gaia-benchmark/GAIA (gated: accept its terms there), and name the folder of the validation split or its metadata file",
  // The release has the same questions again by level: metadata.level1.parquet and so on.
  files: /(?:^|[\\/])metadata\.(?:jsonl|jsonl\.gz|parquet)$/u,
} as const;

/** The test split keeps its answers to itself. */
const HIDDEN = "?";

/** GAIA (Mialon et al., 2023), from the user's copy: its terms forbid shipping it. Checked as by the official scorer. */
export const gaia: TaskSet = {
  id: "gaia",
  title: "GAIA: questions for general assistants (your copy)",
  source: "gaia-benchmark/GAIA",
  licence: "gated; not to be redistributed in a crawlable form",
  async load({ limit, path }) {
    const tasks: Task[] = [];
    const seen = new Set<string>();
    for await (const { where, value } of ownRecords(path, ABOUT)) {
      if (tasks.length >= limit) break;
      const record = parseRecord(recordSchema, value, where);
      if (record["Final answer"] === HIDDEN) {
        throw new RootstepError("DATA_INVALID", {
          what: "this is the test split, whose answers are hidden",
          where,
          hint: "Name the folder or metadata file of the validation split.",
        });
      }
      // A folder may hold the questions in more than one form.
      if (seen.has(record.task_id)) continue;
      seen.add(record.task_id);
      tasks.push(taskOf(record));
    }
    return tasks;
  },
  check(task, answer) {
    const checker = "gaia-question-scorer";
    if (answer === undefined) return { success: false, checker, detail: "the run gave no answer" };
    const truth = task.referenceAnswer;
    if (truth === undefined) throw new RootstepError("CHECKER_FAILED", { what: `task ${task.id} has no answer` });
    return { success: gaiaMatch(answer, truth), checker, answer };
  },
};

function taskOf(record: z.infer<typeof recordSchema>): Task {
  const id = `gaia-${record.task_id}`;
  return {
    id,
    text: record.Question,
    referenceAnswer: record["Final answer"],
    source: "gaia",
    groupId: id,
    extra: { kind: "assistant", level: record.Level, ...(record.file_name ? { fileName: record.file_name } : {}) },
  };
}
