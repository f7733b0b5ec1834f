import { appendFileSync } from "node:fs";
import { RootstepError } from "../../src/errors.ts";
import { latestPredictions, type Prediction, predictionSchema } from "../../src/evaluation/prediction.ts";
import { readPredictions } from "../../src/evaluation/prediction-file.ts";
import { onFile } from "../../src/formats/files.ts";
import { readTracerTraj } from "../../src/formats/tracertraj/read.ts";
import { throwIfInterrupted } from "../../src/interruption.ts";
import type { ConfiguredMethod } from "../../src/methods/method.ts";
import { methodView } from "../../src/methods/view.ts";
import type { ChatModel } from "../../src/models/chat-model.ts";

export interface AttributeOptions {
  /** TracerTraj file of failed runs: `unlabelled.jsonl` of a run folder. */
  readonly file: string;
  /** predictions.jsonl; what it already holds is not asked again. */
  readonly out: string;
  readonly method: ConfiguredMethod;
  readonly model?: ChatModel;
  readonly seed: number;
  /** Milliseconds, for latencies. */
  readonly now: () => number;
  readonly signal?: AbortSignal;
  readonly onPrediction?: (prediction: Prediction) => void;
}

/**
 * Has a method attribute failed runs that nobody has labelled, as a search's prior would ask it: it sees no reference
 * answer. Each line is written as it is made, so that a stopped call goes on where it was.
 *
 * @returns how many runs were asked about now, how many were known before, and in how many of the new answers nothing is named
 * @throws RootstepError those of the method and of the file; CONFIG_INVALID where the method needs a model and has none
 */
export async function attributeUnlabelled(options: AttributeOptions) {
  const { file, out, method, model, seed, now, signal } = options;
  if (method.needs.model && model === undefined) {
    throw new RootstepError("CONFIG_INVALID", {
      what: `method ${method.id} asks a model and none is configured`,
      where: "model",
    });
  }
  const { predictions, torn } = readPredictions(out);
  if (torn)
    throw new RootstepError("RUN_CORRUPT", { what: "the last line has no end", where: out, hint: "Remove it." });
  const known = new Set([...latestPredictions(predictions).values()].map(({ itemId }) => itemId));
  const counts = { asked: 0, known: 0, unnamed: 0 };
  for await (const { trajectory } of readTracerTraj(file)) {
    throwIfInterrupted(signal);
    if (known.has(trajectory.id)) {
      counts.known++;
      continue;
    }
    const started = now();
    const interruptible = signal === undefined ? {} : { signal };
    const context = { seed, epoch: 0, ...(model === undefined ? {} : { model }), ...interruptible };
    const made = await method.attribute(methodView(trajectory, { withReference: false }), context);
    const about = { itemId: trajectory.id, epoch: 0, method: method.id, latencyMs: now() - started };
    const prediction = predictionSchema.parse({ ...made, ...about });
    await onFile(out, async () => appendFileSync(out, `${JSON.stringify(prediction)}\n`));
    counts.asked++;
    counts.unnamed += Number(prediction.step === null && prediction.agent === null);
    options.onPrediction?.(prediction);
  }
  return counts;
}
