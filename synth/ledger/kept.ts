import { z } from "zod";
import { chatResponseSchema } from "../../src/models/chat-response.ts";
import { costSchema } from "./cost.ts";

const count = z.number().int().nonnegative();

/** One rerun by its name. `edit` names the correction that was swapped in. */
export const probeNameSchema = z.strictObject({
  trajectory: z.string(),
  step: count,
  arm: z.enum(["treated", "control", "placebo", "hint"]),
  edit: z.string(),
  replicate: count,
});
export type ProbeName = z.infer<typeof probeNameSchema>;

const keptProbeSchema = z.strictObject({
  kind: z.literal("probe"),
  ...probeNameSchema.shape,
  success: z.boolean(),
  liveCalls: count,
  cost: costSchema,
});
export type KeptProbe = z.infer<typeof keptProbeSchema>;

/** One answer of a model: of the analyzer, or of an agent in a run that is not over. */
const keptAnswerSchema = z.strictObject({
  kind: z.literal("answer"),
  trajectory: z.string(),
  /** Content key of the request, with its epoch or with how often it was asked before. */
  request: z.string(),
  response: chatResponseSchema,
  cost: costSchema,
});
export type KeptAnswer = z.infer<typeof keptAnswerSchema>;

/** A finished part of a unit that is not finished: what a next attempt does not pay for again. */
export const keptSchema = z.discriminatedUnion("kind", [keptProbeSchema, keptAnswerSchema]);
export type Kept = z.infer<typeof keptSchema>;

/** What a part is called: all but what it says. */
export type PartName = (ProbeName & { readonly kind: "probe" }) | Pick<KeptAnswer, "kind" | "trajectory" | "request">;

/** The key under which a part is unique within its unit. */
export function keyOfKept(part: PartName): string {
  return JSON.stringify(
    part.kind === "answer"
      ? [part.kind, part.trajectory, part.request]
      : [part.kind, part.trajectory, part.step, part.arm, part.edit, part.replicate],
  );
}
