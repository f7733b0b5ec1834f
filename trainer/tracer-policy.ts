import type { TracerPolicy } from "../src/methods/method.ts";
import { type MethodView, viewAsTrajectory } from "../src/methods/view.ts";
import type { Trajectory } from "../src/trajectory/schema.ts";
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
  // One trajectory per view: what a codec keeps of it is found again.
  const trajectories = new WeakMap<MethodView, Trajectory>();
  const trajectoryOf = (view: MethodView): Trajectory => {
    const trajectory = trajectories.get(view) ?? viewAsTrajectory(view);
    trajectories.set(view, trajectory);
    return trajectory;
  };
  const { cutOf } = codec;
  const predictBatch: EngineTracerPolicy["predictBatch"] = async (views, { signal } = {}) => {
    if (views.length === 0) return [];
    const prompts = views.map((view) => codec.encodePrompt(trajectoryOf(view)));
    const request = { prompts, n: 1, temperature: 0, seed: "greedy", ...(signal && { signal }) };
    const completions_PG = checkCompletions(source.id, await source.sample(request), request);
    return completions_PG.map(([completion]) => codec.decodeCompletion(completion?.tokens ?? []));
  };
  return {
    id,
    predictBatch,
    ...(cutOf && { cutOf: (view: MethodView) => cutOf(trajectoryOf(view)) }),
    predict: async (view, options) => (await predictBatch([view], options))[0] ?? "",
  };
}
