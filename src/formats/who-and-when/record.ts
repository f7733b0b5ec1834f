import { z } from "zod";
import { TRAJECTORY_SCHEMA_VERSION, type Trajectory } from "../../trajectory/schema.ts";
import type { Loss } from "../format.ts";
import { assertUsable, parseRecord, RecordError } from "../record-error.ts";
import { subsetNamed, WHO_AND_WHEN_SUBSETS, type WhoAndWhenSubset } from "./subsets.ts";

const entrySchema = z.looseObject({
  content: z.string(),
  role: z.string(),
});

const recordSchema = z.looseObject({
  question: z.string(),
  question_ID: z.string().min(1),
  ground_truth: z.string().optional(),
  history: z.array(entrySchema),
  mistake_agent: z.string().min(1),
  /** 0-based, a string in every file of the release. */
  mistake_step: z.union([z.string().regex(/^(0|-?[1-9]\d{0,8})$/, "not an integer in a string"), z.number().int()]),
  mistake_reason: z.string().optional(),
});

/** The fields that decode maps to the model; every other field is kept in `extra`. */
export const KNOWN_FIELDS: readonly string[] = Object.keys(recordSchema.shape);

/** Where a record comes from: enough to give it an id. */
export interface RecordOrigin {
  /** For errors. */
  readonly location: string;
  /** File name without `.json`. */
  readonly stem: string;
  /** Name of the folder the file lies in. */
  readonly folder: string;
  /** What the record counts its first step as; the release counts from 0. */
  readonly indexBase?: 0 | 1 | undefined;
}

/** Trajectory of one Who&When record. @throws RecordError DATA_INVALID, LABEL_OUTSIDE */
export function decodeRecord(value: unknown, origin: RecordOrigin, onLoss?: (loss: Loss) => void): Trajectory {
  const record = parseRecord(recordSchema, value, origin.location);
  const subset = subsetNamed(origin.folder) ?? subsetByContent(record.history);
  const { question, question_ID, ground_truth, history, mistake_agent, mistake_step, mistake_reason, ...rest } = record;
  if ("subset" in rest) onLoss?.({ field: "subset", count: 1, why: "extra.subset says which half the log belongs to" });
  const indexBase = origin.indexBase ?? 0;
  const step = Number(mistake_step) - indexBase;
  if (indexBase === 1 && step === -1) {
    const fault = { path: "mistake_step", message: "step 0, where steps are said to be counted from 1" };
    throw new RecordError("LABEL_OUTSIDE", origin.location, [fault], "Check the index base that was given.");
  }
  const conversions = [
    ...(typeof mistake_step === "number" ? ["mistake_step: number, written as a string"] : []),
    ...(indexBase === 1 ? [`mistake_step: counted from 1 (${mistake_step}), now from 0 (${step})`] : []),
  ];
  const trajectory: Trajectory = {
    schemaVersion: TRAJECTORY_SCHEMA_VERSION,
    id: `${subset.slug}/${origin.stem}`,
    task: {
      id: question_ID,
      text: question,
      ...(ground_truth === undefined ? {} : { referenceAnswer: ground_truth }),
      source: "who-and-when",
      groupId: question_ID,
    },
    system: subset.system,
    stepPolicy: "framework-log",
    steps: history.map((entry, index) => decodeEntry(entry, index, subset, origin.location)),
    outcome: { success: rest[subset.verdict] === true, checker: "who-and-when" },
    labels: [
      {
        agent: mistake_agent,
        step,
        source: "human",
        ...(mistake_reason === undefined ? {} : { reason: mistake_reason }),
      },
    ],
    provenance: {
      kind: "imported",
      simulated: false,
      format: "who-and-when",
      file: `${origin.folder}/${origin.stem}.json`,
      conversions,
    },
    extra: { ...rest, subset: subset.folder },
  };
  assertUsable(trajectory, origin.location);
  return trajectory;
}

/** Outside the release's own folders: entries with a `name` are Algorithm-Generated, those without Hand-Crafted. */
function subsetByContent(history: readonly z.infer<typeof entrySchema>[]): WhoAndWhenSubset {
  const named = history.length > 0 && history.every((entry) => typeof entry.name === "string");
  return WHO_AND_WHEN_SUBSETS[named ? 0 : 1];
}

function decodeEntry(
  entry: z.infer<typeof entrySchema>,
  index: number,
  subset: WhoAndWhenSubset,
  location: string,
): Trajectory["steps"][number] {
  const { content, role, ...others } = entry;
  const { name, ...unnamed } = others;
  const agent = subset.speaker === "name" ? name : role;
  const extra = subset.speaker === "name" ? unnamed : others;
  if (typeof agent !== "string" || agent === "") {
    const path = `history[${index}].${subset.speaker}`;
    throw new RecordError("DATA_INVALID", location, [{ path, message: "the speaker's name is missing" }]);
  }
  return {
    index,
    agent,
    role,
    kind: "message",
    content,
    toolCalls: [],
    retrieved: [],
    callIds: [],
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

/** One Who&When record and the half it belongs to. What the record cannot hold is left out: the writer reports it. */
export function encodeRecord(trajectory: Trajectory): { subset: WhoAndWhenSubset; record: Record<string, unknown> } {
  const { subset: named, ...extra } = trajectory.extra ?? {};
  const bySystem = WHO_AND_WHEN_SUBSETS.find((subset) => subset.system === trajectory.system);
  const subset = subsetNamed(named) ?? bySystem ?? WHO_AND_WHEN_SUBSETS[0];
  const [label] = trajectory.labels;
  if (label === undefined) {
    const fault = { path: "labels", message: "a Who&When record needs a label, this trajectory has none" };
    throw new RecordError("DATA_INVALID", trajectory.id, [fault], "Leave unlabelled trajectories out of the export.");
  }
  assertUsable(trajectory, trajectory.id);
  const { id, text, referenceAnswer } = trajectory.task;
  return {
    subset,
    record: {
      // A record that came from elsewhere has no verdict of Who&When yet.
      ...(named === undefined ? { [subset.verdict]: trajectory.outcome.success } : {}),
      ...extra,
      question: text,
      question_ID: id,
      ...(referenceAnswer === undefined ? {} : { ground_truth: referenceAnswer }),
      history: trajectory.steps.map((step) => ({
        ...step.extra,
        content: step.content,
        role: subset.speaker === "role" ? step.agent : (step.role ?? "assistant"),
        ...(subset.speaker === "name" ? { name: step.agent } : {}),
      })),
      mistake_agent: label.agent,
      mistake_step: String(label.step),
      ...(label.reason === undefined ? {} : { mistake_reason: label.reason }),
    },
  };
}
