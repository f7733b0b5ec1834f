import { z } from "zod";
import { defineMethod } from "../method.ts";
import { openDialogue } from "../shared/dialogue.ts";
import { expectedCalls, firstYes, prefixCharacters, toAnswer } from "../shared/first-yes.ts";
import { NO_STEPS } from "../shared/no-steps.ts";
import { firstSettings, logBudgetOption, structuredOption } from "../shared/prompt-options.ts";
import { promptTemplate } from "../shared/prompt-template.ts";
import { samplingOptions } from "../shared/sampling-options.ts";

const ID = "step-by-step";

const optionsSchema = z.strictObject({
  ...samplingOptions,
  logBudget: logBudgetOption,
  structured: structuredOption.default("never"),
});

/**
 * The log grows step by step; after each one the model says whether it was the decisive error (Zhang et al. 2025,
 * "step-by-step"). The first yes is the answer. A run in which every answer is no stays without an answer: `noStepNamed`.
 */
export const stepByStep = defineMethod({
  id: ID,
  title: "Step by step: a growing prefix, asked after each step, until the first yes",
  needs: { model: true },
  optionsSchema,
  plan: (view, options) => {
    const { steps } = view;
    const expected = steps.length === 0 ? 0 : expectedCalls(steps.length);
    return {
      calls: { low: Math.min(1, steps.length), expected, high: steps.length },
      promptCharacters: prefixCharacters(promptTemplate(ID), view, steps.slice(0, expected), firstSettings(options)),
      completionTokensLimit: steps.length * options.maxTokens,
    };
  },
  attribute: async (view, options, context) => {
    const dialogue = openDialogue(ID, options, context);
    if (view.steps.length === 0) return NO_STEPS;
    const found = await firstYes(dialogue, promptTemplate(ID), view, view.steps);
    return { ...toAnswer(found), ...dialogue.totals() };
  },
});
