import { z } from "zod";
import { RootstepError } from "../../errors.ts";
import type { ChatResponse } from "../../models/chat-model.ts";
import { parseTracerOutput } from "../../reward/format-gate.ts";
import { type Attribution, defineMethod } from "../method.ts";
import { explained } from "../shared/answer-text.ts";
import { openDialogue } from "../shared/dialogue.ts";
import { type LogPrompt, logPrompt, promptCharacters } from "../shared/log-prompt.ts";
import { logBudgetOption } from "../shared/prompt-options.ts";
import { promptTemplate } from "../shared/prompt-template.ts";
import { samplingOptions } from "../shared/sampling-options.ts";
import type { MethodView } from "../view.ts";

const ID = "tracer";

/** Characters of log in a prompt: about 24k tokens, so that prompt and reasoning fit into Qwen3-8B's 32k window. */
export const DEFAULT_LOG_BUDGET = 96_000;

const optionsSchema = z.strictObject({
  ...samplingOptions,
  maxTokens: samplingOptions.maxTokens.default(4096),
  logBudget: logBudgetOption.default(DEFAULT_LOG_BUDGET),
});

/** The prompt a tracer is trained and evaluated on, and what of the log was cut. `logBudget` in characters. */
export function tracerMessages(view: MethodView, logBudget = DEFAULT_LOG_BUDGET): LogPrompt {
  return logPrompt(promptTemplate(ID), view, { form: "text", logBudget });
}

/** The output as the policy wrote it: servers with a reasoning parser take the `<think>` element apart. */
export function tracerOutput(response: Pick<ChatResponse, "content" | "reasoning">): string {
  const { content, reasoning } = response;
  if (reasoning === undefined || content.includes("<think>")) return content;
  return `<think>${reasoning}</think>${content}`;
}

/** Reads an output through the format gate alone: what the reward would not accept is no answer. */
function read(output: string): Pick<Attribution, "agent" | "step" | "evidence" | "parsePath" | "parseFailure"> {
  const parsed = parseTracerOutput(output);
  if (!parsed.ok) return { agent: null, step: null, evidence: [], parsePath: "none", parseFailure: parsed.reason };
  const { agent, step, think } = parsed;
  return { agent, step, evidence: [{ step, text: think }], parsePath: "format-gate" };
}

/** A trained failure tracer (§4.2): a chat model or a policy that answers in the format of the reward. */
export const tracer = defineMethod({
  id: ID,
  title: "Tracer: a model trained with the format-gated reward",
  needs: { model: true },
  optionsSchema,
  plan: (view, options) => ({
    calls: { low: 1, expected: 1, high: 1 },
    promptCharacters: promptCharacters(tracerMessages(view, options.logBudget)),
    completionTokensLimit: options.maxTokens,
  }),
  attribute: async (view, options, context) => {
    const { policy, model, seed, epoch, signal } = context;
    if (policy !== undefined) {
      const rawOutput = await policy.predict(view, { seed, epoch, ...(signal && { signal }) });
      const cut = policy.cutOf?.(view);
      return { ...read(rawOutput), calls: 1, rawOutput, ...(cut && { cut }) };
    }
    if (model === undefined) {
      throw new RootstepError("CONFIG_INVALID", { what: "the tracer needs a model or a checkpoint and has neither" });
    }
    const dialogue = openDialogue(ID, options, context);
    const response = await dialogue.ask({
      name: "answer",
      prompt: ({ logBudget }) => tracerMessages(view, logBudget),
    });
    const rawOutput = tracerOutput(response);
    const { evidence, ...answer } = explained(read(rawOutput), response.finishReason);
    for (const remark of evidence) dialogue.note(remark);
    return { ...answer, ...dialogue.totals(), rawOutput };
  },
});
