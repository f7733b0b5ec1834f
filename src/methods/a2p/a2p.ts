import { z } from "zod";
import { defineMethod, type Evidence } from "../method.ts";
import { answerSchema } from "../shared/answer-schema.ts";
import { answerText, explained } from "../shared/answer-text.ts";
import { openDialogue } from "../shared/dialogue.ts";
import { logPrompt, promptCharacters } from "../shared/log-prompt.ts";
import { parseAnswer } from "../shared/parse-answer.ts";
import { firstSettings, logBudgetOption, structuredOption } from "../shared/prompt-options.ts";
import { promptTemplate } from "../shared/prompt-template.ts";
import { readFields } from "../shared/read-fields.ts";
import { samplingOptions } from "../shared/sampling-options.ts";
import { agentsOf } from "../view.ts";

const ID = "a2p";

const optionsSchema = z.strictObject({
  ...samplingOptions,
  // Three moves of reasoning before the answer.
  maxTokens: samplingOptions.maxTokens.default(4096),
  logBudget: logBudgetOption,
  structured: structuredOption.default("auto"),
});

const MOVES = ["abduction", "action", "prediction"] as const;

/** Labels under which a move may stand, in the form of `keyName`. */
const MOVE_LABELS = {
  abduction: ["abduction", "abduct", "stepabduction", "hiddencauses"],
  action: ["action", "act", "stepaction", "intervention"],
  prediction: ["prediction", "predict", "stepprediction"],
};

/**
 * One call that abducts hidden causes, acts on the log by a minimal counterfactual fix, predicts the next turns and only
 * then answers (West et al. 2025, "Abduct, Act, Predict").
 */
export const a2p = defineMethod({
  id: ID,
  title: "A2P: abduct hidden causes, act by a minimal fix, predict the next turns",
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
      schema: answerSchema("abduct_act_predict", MOVES),
    });
    const parsed = explained(parseAnswer(response.content, agentsOf(view)), response.finishReason);
    const { reason: _, ...answer } = parsed;
    for (const remark of moves(response.content, answer.step)) dialogue.note(remark);
    return { ...answer, ...dialogue.totals() };
  },
});

/** The three moves as evidence, as far as the output labels them. */
function moves(output: string, step: number | null): Evidence[] {
  const answer = answerText(output);
  if ("failure" in answer) return [];
  const [beforeAnswer = ""] = answer.text.split("<answer>", 1);
  const fields = readFields(beforeAnswer, MOVE_LABELS);
  return MOVES.flatMap((move) => {
    const text = fields?.last[move];
    if (text === undefined || text === "") return [];
    return [{ text: `${move}: ${text}`, ...(move === "action" && step !== null && { step }) }];
  });
}
