import { z } from "zod";
import type { ChatMessage } from "../../models/chat-model.ts";
import { defineMethod, type LogCut, requireModel } from "../method.ts";
import { parseAnswer } from "../shared/parse-answer.ts";
import { fillPrompt, promptTemplate, runSlots } from "../shared/prompt-template.ts";
import { renderLog } from "../shared/render-log.ts";
import { samplingOptions, samplingParameters } from "../shared/sampling-options.ts";
import { agentsOf, type MethodView } from "../view.ts";

const ID = "all-at-once";

const optionsSchema = z.strictObject({
  ...samplingOptions,
  logBudget: z
    .number()
    .int()
    .positive()
    .optional()
    .describe("most characters of the log in the prompt; the whole log where unset"),
});

function messages(view: MethodView, logBudget: number | undefined): { messages: ChatMessage[]; cut?: LogCut } {
  const { text, cut } = renderLog(view, logBudget);
  const filled = fillPrompt(promptTemplate(ID), { ...runSlots(view), log: text });
  return { messages: filled, ...(cut && { cut }) };
}

/** One call over the whole log (Zhang et al. 2025, "all-at-once"). */
export const allAtOnce = defineMethod({
  id: ID,
  title: "All at once: one call over the whole log",
  needs: { model: true },
  optionsSchema,
  plan: (view, options) => ({
    calls: { low: 1, expected: 1, high: 1 },
    promptCharacters: messages(view, options.logBudget).messages.reduce((n, m) => n + m.content.length, 0),
    completionTokensLimit: options.maxTokens,
  }),
  attribute: async (view, options, context) => {
    const prompt = messages(view, options.logBudget);
    const response = await requireModel(context, ID).complete(
      { messages: prompt.messages, ...samplingParameters(options) },
      { agent: ID, epoch: context.epoch, ...(context.signal && { signal: context.signal }) },
    );
    const { reason, ...answer } = parseAnswer(response.content, agentsOf(view));
    return {
      ...answer,
      evidence: reason === undefined ? [] : [{ text: reason, ...stepOf(answer.step) }],
      calls: 1,
      rawOutput: response.content,
      ...(response.usage && { usage: response.usage }),
      ...(prompt.cut && { cut: prompt.cut }),
    };
  },
});

const stepOf = (step: number | null): { step?: number } => (step === null ? {} : { step });
