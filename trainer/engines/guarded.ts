import { RootstepError } from "../../src/errors.ts";
import type { RolloutSource, TrainingEngine } from "./engine.ts";

/** Names the engine and the verb in every error that is not from the catalogue; catalogue errors pass unchanged. */
export function guardSource(source: RolloutSource): RolloutSource {
  return { id: source.id, sample: (request) => guarded(source.id, "sample", () => source.sample(request)) };
}

/** The same for all verbs of a training engine. */
export function guardEngine(engine: TrainingEngine): TrainingEngine {
  const { frozenSampler } = engine;
  return {
    ...guardSource(engine),
    codec: engine.codec,
    limits: engine.limits,
    forward: (groups) => guarded(engine.id, "forward", () => engine.forward(groups)),
    forwardBackward: (groups, loss) =>
      guarded(engine.id, "forwardBackward", () => engine.forwardBackward(groups, loss)),
    optimStep: (settings) => guarded(engine.id, "optimStep", () => engine.optimStep(settings)),
    ...(frozenSampler && {
      frozenSampler: async () => guardSource(await guarded(engine.id, "frozenSampler", () => frozenSampler())),
    }),
    exportState: () => guarded(engine.id, "exportState", () => engine.exportState()),
    importState: (state) => guarded(engine.id, "importState", () => engine.importState(state)),
    close: () => guarded(engine.id, "close", () => engine.close()),
  };
}

async function guarded<T>(engineId: string, verb: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof RootstepError) throw error;
    const what = `${verb} failed: ${error instanceof Error ? error.message : String(error)}`;
    throw new RootstepError("ENGINE_FAILED", { what, where: `engine ${engineId}`, cause: error });
  }
}
