import { existsSync } from "node:fs";
import { RootstepError } from "../../src/errors.ts";
import { latestPredictions } from "../../src/evaluation/prediction.ts";
import { readPredictions } from "../../src/evaluation/prediction-file.ts";
import { METHODS, methodById } from "../../src/methods/registry.ts";
import { methodView } from "../../src/methods/view.ts";
import type { ChatModel } from "../../src/models/chat-model.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { pooledWeights } from "./attribution-prior.ts";

/** Where a search's prior comes from: predictions that `eval run` has made, or a method that is asked about each run. */
export type PriorSource =
  | { readonly kind: "predictions"; weightsFor(id: string, agents: readonly string[]): number[] | undefined }
  | { readonly kind: "method"; readonly id: string };

/** True where the setting `search.prior` names a method, not a file. */
export const isPriorMethod = (setting: string): boolean => METHODS.some(({ id }) => id === setting);

/**
 * Reads the setting `search.prior`: the id of an attribution method, or a predictions.jsonl.
 *
 * @param strength see `weightsOf`
 * @throws RootstepError CONFIG_INVALID where it is neither; RUN_CORRUPT naming the line of a damaged file
 */
export function openPrior(setting: string, strength: number): PriorSource {
  if (isPriorMethod(setting)) return { kind: "method", id: setting };
  if (!existsSync(setting)) {
    const known = METHODS.map(({ id }) => id).join(", ");
    throw new RootstepError("CONFIG_INVALID", {
      what: `"${setting}" is neither an attribution method (${known}) nor a file of predictions`,
      where: "search.prior",
    });
  }
  const { predictions } = readPredictions(setting);
  // Of several lines for one log and epoch the last one counts: a resumed run asks again what had failed.
  const latest = [...latestPredictions(predictions).values()];
  return {
    kind: "predictions",
    weightsFor(id, agents) {
      const about = latest.filter(({ itemId }) => itemId === id);
      return pooledWeights(about, agents, strength);
    },
  };
}

/**
 * What a method believes about one failed run. It sees the run as in an evaluation without G: no label, no answer.
 *
 * @throws RootstepError those of the method: MODEL_*, BUDGET_REACHED, INTERRUPTED
 */
export async function askForPrior(
  method: string,
  trajectory: Trajectory,
  options: {
    readonly strength: number;
    readonly model: ChatModel;
    readonly seed: number;
    readonly signal?: AbortSignal;
  },
): Promise<number[] | undefined> {
  const { strength, model, seed, signal } = options;
  const context = { model, seed, epoch: 0, ...(signal === undefined ? {} : { signal }) };
  const view = methodView(trajectory, { withReference: false });
  const opinion = await methodById(method).configure().attribute(view, context);
  return pooledWeights(
    [opinion],
    trajectory.steps.map(({ agent }) => agent),
    strength,
  );
}
