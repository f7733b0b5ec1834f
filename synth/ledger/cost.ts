import { z } from "zod";

const count = z.number().int().nonnegative();

/**
 * What work has cost. Money is counted in whole billionths of the currency, so that a sum does not depend on the order in
 * which its parts arrive; null where a price or a usage is not known.
 */
export const costSchema = z.strictObject({
  calls: count,
  promptTokens: count,
  completionTokens: count,
  nanos: count.nullable(),
});
export type Cost = z.infer<typeof costSchema>;

export const NO_COST: Cost = { calls: 0, promptTokens: 0, completionTokens: 0, nanos: 0 };

export function addCosts(a: Cost, b: Cost): Cost {
  return {
    calls: a.calls + b.calls,
    promptTokens: a.promptTokens + b.promptTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    nanos: a.nanos === null || b.nanos === null ? null : a.nanos + b.nanos,
  };
}

/** What was added between two readings of a running sum. */
export function costSince(before: Cost, now: Cost): Cost {
  return {
    calls: now.calls - before.calls,
    promptTokens: now.promptTokens - before.promptTokens,
    completionTokens: now.completionTokens - before.completionTokens,
    nanos: now.nanos === null || before.nanos === null ? null : now.nanos - before.nanos,
  };
}

/** In the currency of the prices. */
export const money = (cost: Cost): number | null => (cost.nanos === null ? null : cost.nanos / 1e9);
