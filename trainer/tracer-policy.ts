import type { TracerPolicy } from "../src/methods/method.ts";
import { type MethodView, viewAsTrajectory } from "../src/methods/view.ts";
import type { RolloutSource, TracerCodec } from "./engines/engine.ts";
import { checkCompletions } from "./rollouts.ts";

/** A trained tracer that answers: what `eval` uses as the method `tracer`. */
export interface EngineTracerPolicy extends TracerPolicy {
  /** Greedy completions as text, all views in one call of the engine. */
  predictBatch(views: readonly MethodView[], options?: { readonly signal?: AbortSignal }): Promise<readonly string[]>;
}

/**
 * Greedy answers from a policy. Seed and epoch change nothing, for there is nothing random.
 *
 * @param source the engine, or a server that holds its weights @param codec the engine's codec
 * @throws RootstepError VOCABULARY where the codec cannot write a run, ENGINE_FAILED
 */
export function createTracerPolicy(
  source: RolloutSource,
  codec: TracerCodec,
  id: string = `tracer:${source.id}`,
): EngineTracerPolicy {
  const predictBatch: EngineTracerPolicy["predictBatch"] = async (views, { signal } = {}) => {
    if (views.length === 0) return [];
    const prompts = views.map((view) => codec.encodePrompt(viewAsTrajectory(view)));
    const request = { prompts, n: 1, temperature: 0, seed: "greedy", ...(signal && { signal }) };
    const completions_PG = checkCompletions(source.id, await source.sample(request), request);
    return completions_PG.map(([completion]) => codec.decodeCompletion(completion?.tokens ?? []));
  };
  return {
    id,
    predictBatch,
    predict: async (view, options) => (await predictBatch([view], options))[0] ?? "",
  };
}
