import type { MethodView } from "../src/methods/view.ts";
import type { EngineTracerPolicy } from "./tracer-policy.ts";

/** The largest batch that is handed to the engine at once. */
const LARGEST_BATCH = 256;

interface Waiting {
  readonly view: MethodView;
  readonly resolve: (text: string) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Answers questions that are asked at the same time in one call of the engine. Greedy answers do not depend on what else
 * is in the batch; a view that the policy cannot read fails alone.
 */
export function batchedPolicy(policy: EngineTracerPolicy): EngineTracerPolicy {
  let waiting: Waiting[] = [];
  const flush = async (): Promise<void> => {
    const batch = waiting.slice(0, LARGEST_BATCH);
    waiting = waiting.slice(LARGEST_BATCH);
    if (waiting.length > 0) setImmediate(flush);
    try {
      const texts = await policy.predictBatch(batch.map(({ view }) => view));
      batch.forEach(({ resolve }, index) => void resolve(texts[index] ?? ""));
    } catch (error) {
      if (batch.length === 1) batch[0]?.reject(error);
      else
        for (const { view, resolve, reject } of batch)
          policy.predictBatch([view]).then(([text]) => resolve(text ?? ""), reject);
    }
  };
  return {
    ...policy,
    predict: (view) =>
      new Promise((resolve, reject) => {
        if (waiting.length === 0) setImmediate(flush);
        waiting.push({ view, resolve, reject });
      }),
  };
}
