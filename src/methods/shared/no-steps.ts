import type { Attribution } from "../method.ts";

/** What a method that asks about steps says of a run without any. */
export const NO_STEPS: Attribution = {
  agent: null,
  step: null,
  evidence: [],
  calls: 0,
  parsePath: "none",
  parseFailure: "the log has no steps",
};
