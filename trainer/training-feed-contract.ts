import { z } from "zod";
import { evaluationSchema, metricSchema, sftMetricSchema, timingSchema } from "./metrics.ts";
import { courseEventSchema, trainingStateSchema } from "./training-course.ts";

/** Records that a resumed run makes again, from its last checkpoint on. */
export const REWINDABLE = ["metric", "evaluation", "timing"] as const;
export type Rewindable = (typeof REWINDABLE)[number];

/** What a follower of a training folder hears, in this order at first: the run, its records so far, its state. */
export const trainingEventSchema = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("run"),
    run: z.strictObject({
      kind: z.enum(["grpo", "sft"]),
      steps: z.number().int().nonnegative(),
      startedAt: z.string(),
    }),
  }),
  z.strictObject({ kind: z.literal("metric"), metric: z.union([metricSchema, sftMetricSchema]) }),
  z.strictObject({ kind: z.literal("evaluation"), evaluation: evaluationSchema }),
  z.strictObject({ kind: z.literal("timing"), timing: timingSchema }),
  z
    .strictObject({
      kind: z.literal("rewound"),
      of: z.enum(REWINDABLE),
      kept: z.number().int().nonnegative().describe("records of that kind that still stand, from the first"),
    })
    .describe("the run was resumed from a checkpoint: drop what came after, it comes anew"),
  z.strictObject({ kind: z.literal("course"), course: courseEventSchema }),
  z.strictObject({ kind: z.literal("state"), ...trainingStateSchema.shape }),
]);
export type TrainingFeedEvent = z.infer<typeof trainingEventSchema>;

/** An event and where the feed can be taken up again after it: the id of a server-sent event. */
export const feedMessageSchema = z.strictObject({ position: z.string(), event: trainingEventSchema });
export type FeedMessage = z.infer<typeof feedMessageSchema>;
