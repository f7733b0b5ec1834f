import type { Attribution, Evidence, MethodContext, MethodPlan } from "../method.ts";
import { agentsOf, type MethodView } from "../view.ts";
import { explained } from "./answer-text.ts";
import { type DialogueOptions, openDialogue, type Question } from "./dialogue.ts";
import { logPrompt, promptCharacters } from "./log-prompt.ts";
import { type ParsedAnswer, parseAnswer } from "./parse-answer.ts";
import { firstSettings } from "./prompt-options.ts";
import { promptTemplate } from "./prompt-template.ts";

/** What a method of one call over the whole log brings of its own. */
interface OneCall {
  readonly id: string;
  readonly schema: NonNullable<Question["schema"]>;
  /** What of the output is worth keeping beside the answer. */
  readonly remarks: (output: string, answer: ParsedAnswer) => readonly Evidence[];
}

/** Plan and course of a method that shows the whole log once and reads one answer. */
export function oneCall({ id, schema, remarks }: OneCall): {
  plan(view: MethodView, options: DialogueOptions): MethodPlan;
  attribute(view: MethodView, options: DialogueOptions, context: MethodContext): Promise<Attribution>;
} {
  return {
    plan: (view, options) => ({
      calls: { low: 1, expected: 1, high: 1 },
      promptCharacters: promptCharacters(logPrompt(promptTemplate(id), view, firstSettings(options))),
      completionTokensLimit: options.maxTokens,
    }),
    attribute: async (view, options, context) => {
      const dialogue = openDialogue(id, options, context);
      const response = await dialogue.ask({
        name: "answer",
        prompt: (settings) => logPrompt(promptTemplate(id), view, settings),
        schema,
      });
      const parsed = explained(parseAnswer(response.content, agentsOf(view)), response.finishReason);
      for (const remark of remarks(response.content, parsed)) dialogue.note(remark);
      const { reason: _, ...answer } = parsed;
      return { ...answer, ...dialogue.totals() };
    },
  };
}
