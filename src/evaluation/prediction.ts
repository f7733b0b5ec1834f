import { z } from "zod";
import { PARSE_PATHS } from "../methods/method.ts";
import { usageSchema } from "../trajectory/schema.ts";

/** One method's answer for one log and epoch: a line of predictions.jsonl. */
export const predictionSchema = z.strictObject({
  itemId: z.string(),
  /** 0-based repetition. */
  epoch: z.number().int().nonnegative(),
  method: z.string(),
  /** null where the output named none, or the call failed. */
  agent: z.string().nullable(),
  /** 0-based. */
  step: z.number().int().nullable(),
  confidence: z.number().optional(),
  ranking: z.array(z.strictObject({ agent: z.string(), step: z.number().int(), score: z.number() })).optional(),
  evidence: z.array(z.strictObject({ step: z.number().int().optional(), text: z.string() })).default([]),
  rawOutput: z.string().optional(),
  parsePath: z.enum(PARSE_PATHS),
  parseFailure: z.string().optional(),
  /** Every answer was read and none named a step: no hit, and no parse failure. */
  noStepNamed: z.literal(true).optional(),
  /** How many different answers the output held, where more than one; the last one counts. */
  answers: z.number().int().optional(),
  cut: z
    .strictObject({
      stepsCut: z.number().int(),
      charactersCut: z.number().int(),
      charactersTotal: z.number().int(),
      overBudget: z.boolean(),
    })
    .optional(),
  calls: z.number().int().nonnegative(),
  /** Absent where the server reports none. */
  usage: usageSchema.optional(),
  latencyMs: z.number().nonnegative(),
  /** A failed model call: counted as wrong, asked again when the run is resumed. */
  error: z.strictObject({ code: z.string(), message: z.string() }).optional(),
});
export type Prediction = z.infer<typeof predictionSchema>;

/** Identifies a prediction inside a run. */
export function predictionKey(prediction: Pick<Prediction, "itemId" | "epoch">): string {
  return `${prediction.epoch} ${prediction.itemId}`;
}

/** In the order of the items, epochs inside; the same whatever the concurrency. Ids that are no items come last. */
export function sortPredictions(
  predictions: readonly Prediction[],
  items: readonly { readonly id: string }[],
): Prediction[] {
  const positions = new Map(items.map((item, position) => [item.id, position]));
  const position = (prediction: Prediction): number => positions.get(prediction.itemId) ?? items.length;
  return [...predictions].sort(
    (a, b) =>
      position(a) - position(b) || (a.itemId < b.itemId ? -1 : a.itemId > b.itemId ? 1 : 0) || a.epoch - b.epoch,
  );
}

/** The latest prediction per log and epoch: a resumed run appends a second line where a first call failed. */
export function latestPredictions(predictions: readonly Prediction[]): Map<string, Prediction> {
  return new Map(predictions.map((prediction) => [predictionKey(prediction), prediction]));
}
