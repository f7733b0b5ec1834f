import { z } from "zod";
import { defineMethod } from "../method.ts";
import { answerSchema } from "../shared/answer-schema.ts";
import { oneCall } from "../shared/one-call.ts";
import { logBudgetOption, structuredOption } from "../shared/prompt-options.ts";
import { samplingOptions } from "../shared/sampling-options.ts";

const ID = "all-at-once";

const optionsSchema = z.strictObject({
  ...samplingOptions,
  logBudget: logBudgetOption,
  // The benchmark's baselines answer in text: a schema would make another method of them.
  structured: structuredOption.default("never"),
});

/** One call over the whole log (Zhang et al. 2025, "all-at-once"). */
export const allAtOnce = defineMethod({
  id: ID,
  title: "All at once: one call over the whole log",
  needs: { model: true },
  optionsSchema,
  ...oneCall({
    id: ID,
    schema: answerSchema("attribution"),
    remarks: (_, { reason, step }) => (reason === undefined ? [] : [{ text: reason, ...(step !== null && { step }) }]),
  }),
});
