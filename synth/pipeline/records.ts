import { z } from "zod";
import { outcomeSchema, trajectorySchema } from "../../src/trajectory/schema.ts";
import { tapeSchema } from "../tape/tape-schema.ts";

const count = z.number().int().nonnegative();
const arm = z.strictObject({ runs: count, successes: count });

/** recordings.jsonl: one run of one task. */
export const recordingSchema = z.strictObject({
  id: z.string(),
  taskId: z.string(),
  tape: tapeSchema,
  outcome: outcomeSchema,
  /** Why the run fails the identity gate, if it does. */
  notReplayable: z.string().exactOptional(),
});
export type RecordingRecord = z.infer<typeof recordingSchema>;

const stepEvidenceSchema = z.strictObject({
  step: count,
  treated: arm,
  control: arm,
  eValue: z.number().exactOptional(),
  examination: count.exactOptional(),
  decision: z.enum(["effect", "no effect", "undecided", "no correction", "flip", "no flip"]),
});

const proposalCountsSchema = z.strictObject({
  usable: count,
  nonsense: count,
  refused: count,
  leaked: count,
  rewritten: count,
});

/** searches.jsonl: what one strategy said about one failed run. */
export const searchRecordSchema = z.strictObject({
  id: z.string(),
  strategy: z.string(),
  verdict: z.enum(["earliest-confirmed", "decisive-earlier-undecided", "undecided", "not-replayable", "first-flip"]),
  step: count.exactOptional(),
  agent: z.string().exactOptional(),
  evidence: z.array(stepEvidenceSchema),
  corrections: z.array(
    z.strictObject({
      step: count,
      action: z.string(),
      attempts: count,
      editSize: count,
      editShare: z.number().min(0).max(1).exactOptional(),
      rejected: z.array(z.string()),
      counts: proposalCountsSchema.exactOptional(),
    }),
  ),
  rejectedCorrections: z.array(z.string()),
  /** What the analyzer's proposals came to; absent in records of older versions. */
  analyzer: z.strictObject({ ...proposalCountsSchema.shape, steps: count, corrected: count }).exactOptional(),
  /** Reruns of the placebo and hint arms at the named step. */
  controls: z.strictObject({ step: count, placebo: arm.exactOptional(), hint: arm.exactOptional() }).exactOptional(),
  /** Weights over the steps from which the search started. */
  prior: z.array(z.number().nonnegative()).exactOptional(),
  liveCalls: count,
});
export type SearchRecord = z.infer<typeof searchRecordSchema>;

/** injections.jsonl: what injection made of one successful run. */
export const injectionRecordSchema = z.strictObject({
  id: z.string(),
  admission: z.strictObject({ runs: count, successes: count, admitted: z.boolean() }),
  points: z.array(
    z.strictObject({
      step: count,
      action: z.string(),
      /** What made the action; absent where nothing did, and in records of older versions. */
      operator: z.string().exactOptional(),
      blocks: count,
      perturbedFailures: count,
      placeboFailures: count,
      eValue: z.number(),
      decision: z.enum(["decisive", "harmless", "undecided", "nothing to change"]),
    }),
  ),
  /** The failed run that carries the fault, with its label. */
  trajectory: trajectorySchema.exactOptional(),
  liveCalls: count,
});
export type InjectionRecord = z.infer<typeof injectionRecordSchema>;

/** truth.jsonl: the simulator's own ledger. Nothing but the report reads it. */
export const truthRecordSchema = z.strictObject({
  id: z.string(),
  /** First step after which even an error-free team can no longer succeed; null if there is none. */
  step: count.nullable(),
  agent: z.string().nullable(),
  /** Steps at which the simulator erred in this run. */
  erred: z.array(count),
});
export type TruthRecord = z.infer<typeof truthRecordSchema>;
