import { z } from "zod";
import { defineMethod, type Evidence } from "../method.ts";
import { answerSchema } from "../shared/answer-schema.ts";
import { answerText } from "../shared/answer-text.ts";
import { oneCall } from "../shared/one-call.ts";
import { logBudgetOption, structuredOption } from "../shared/prompt-options.ts";
import { readFields } from "../shared/read-fields.ts";
import { samplingOptions } from "../shared/sampling-options.ts";

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
  ...oneCall({
    id: ID,
    schema: answerSchema("abduct_act_predict", MOVES),
    remarks: (output, { step }) => moves(output, step),
  }),
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
