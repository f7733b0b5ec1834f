import { z } from "zod";
import { RootstepError } from "../../errors.ts";
import type { ChatMessage, ChatResponse } from "../../models/chat-model.ts";
import { parseTracerOutput } from "../../reward/format-gate.ts";
import { type Attribution, defineMethod, type LogCut } from "../method.ts";
import { fillPrompt, promptTemplate, runSlots } from "../shared/prompt-template.ts";
import { renderLog } from "../shared/render-log.ts";
import { samplingOptions, samplingParameters } from "../shared/sampling-options.ts";
import type { MethodView } from "../view.ts";

const ID = "tracer";

/** Characters of log in a prompt: about 24k tokens, so that prompt and reasoning fit into Qwen3-8B's 32k window. */
export const DEFAULT_LOG_BUDGET = 96_000;

const optionsSchema = z.strictObject({
  ...samplingOptions,
  maxTokens: samplingOptions.maxTokens.default(4096),
  logBudget: z
    .number()
    .int()
    .positive()
    .default(DEFAULT_LOG_BUDGET)
    .describe("most characters of the log in the prompt; long steps keep head and tail"),
});

/** The prompt a tracer is trained and evaluated on, and what of the log was cut. `logBudget` in characters. */
export function tracerMessages(
  view: MethodView,
  logBudget = DEFAULT_LOG_BUDGET,
): { readonly messages: ChatMessage[]; readonly cut?: LogCut } {
  const { text, cut } = renderLog(view, logBudget);
  const messages = fillPrompt(promptTemplate(ID), { ...runSlots(view), log: text });
  return { messages, ...(cut && { cut }) };
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
    promptCharacters: tracerMessages(view, options.logBudget).messages.reduce((n, m) => n + m.content.length, 0),
    completionTokensLimit: options.maxTokens,
  }),
  attribute: async (view, options, { policy, model, seed, epoch, signal }) => {
    if (policy !== undefined) {
      const rawOutput = await policy.predict(view, { seed, epoch, ...(signal && { signal }) });
      return { ...read(rawOutput), calls: 1, rawOutput };
    }
    if (model === undefined) {
      throw new RootstepError("CONFIG_INVALID", { what: "the tracer needs a model or a checkpoint and has neither" });
    }
    const { messages, cut } = tracerMessages(view, options.logBudget);
    const response = await model.complete(
      { messages, ...samplingParameters(options) },
      { agent: ID, epoch, ...(signal && { signal }) },
    );
    const rawOutput = tracerOutput(response);
    return {
      ...read(rawOutput),
      calls: 1,
      rawOutput,
      ...(response.usage && { usage: response.usage }),
      ...(cut && { cut }),
    };
  },
});
