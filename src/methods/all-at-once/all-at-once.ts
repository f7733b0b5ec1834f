import { z } from "zod";
import { defineMethod } from "../method.ts";
import { answerSchema } from "../shared/answer-schema.ts";
import { explained } from "../shared/answer-text.ts";
import { openDialogue } from "../shared/dialogue.ts";
import { logPrompt, promptCharacters } from "../shared/log-prompt.ts";
import { parseAnswer } from "../shared/parse-answer.ts";
import { firstSettings, logBudgetOption, structuredOption } from "../shared/prompt-options.ts";
import { promptTemplate } from "../shared/prompt-template.ts";
import { samplingOptions } from "../shared/sampling-options.ts";
import { agentsOf } from "../view.ts";

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
  plan: (view, options) => ({
    calls: { low: 1, expected: 1, high: 1 },
    promptCharacters: promptCharacters(logPrompt(promptTemplate(ID), view, firstSettings(options))),
    completionTokensLimit: options.maxTokens,
  }),
  attribute: async (view, options, context) => {
    const dialogue = openDialogue(ID, options, context);
    const response = await dialogue.ask({
      name: "answer",
      prompt: (settings) => logPrompt(promptTemplate(ID), view, settings),
      schema: answerSchema("attribution"),
    });
    const parsed = explained(parseAnswer(response.content, agentsOf(view)), response.finishReason);
    const { reason, ...answer } = parsed;
    if (reason !== undefined) dialogue.note({ text: reason, ...(answer.step !== null && { step: answer.step }) });
    return { ...answer, ...dialogue.totals() };
  },
});
