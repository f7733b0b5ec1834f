import { isError, RootstepError } from "../../errors.ts";
import type { ChatRequest, ChatResponse } from "../../models/chat-model.ts";
import type { Usage } from "../../trajectory/schema.ts";
import { type Attribution, type Evidence, type LogCut, type MethodContext, requireModel } from "../method.ts";
import { isContextOverflow, smallerBudget } from "./context-overflow.ts";
import type { LogPrompt, PromptSettings } from "./log-prompt.ts";
import { firstSettings } from "./prompt-options.ts";
import { type Sampling, samplingParameters } from "./sampling-options.ts";

/** One question to the model. */
export interface Question {
  /** Names the call in evidence and raw output: "step 3", "judge, round 1". */
  readonly name: string;
  /** Builds the prompt; asked again with a smaller budget or another form where the server refuses. */
  readonly prompt: (settings: PromptSettings) => LogPrompt;
  /** JSON Schema of the answer, sent where the method's option `structured` is `auto`. */
  readonly schema?: { readonly name: string; readonly schema: Readonly<Record<string, unknown>> };
}

/** The calls of one method about one run, and what they took together. */
export interface Dialogue {
  /**
   * Asks the model. A refusal that names the context's length halves the log's budget, up to three times; a refusal of
   * structured output makes it a plain question. Both are remembered for later questions and recorded as evidence.
   *
   * @throws RootstepError MODEL_*, BUDGET_REACHED, INTERRUPTED
   */
  ask(question: Question): Promise<ChatResponse>;
  /** Records something a reader of the result should know. */
  note(evidence: Evidence): void;
  /** What the calls took and what was noted, for the attribution. */
  totals(): Pick<Attribution, "evidence" | "calls" | "usage" | "rawOutput" | "cut">;
}

export interface DialogueOptions extends Sampling {
  readonly logBudget?: number | undefined;
  readonly structured?: "auto" | "never";
}

const MOST_HALVINGS = 3;

/** @throws RootstepError CONFIG_INVALID where the context has no model */
export function openDialogue(methodId: string, options: DialogueOptions, context: MethodContext): Dialogue {
  const model = requireModel(context, methodId);
  const callOptions = { agent: methodId, epoch: context.epoch, ...(context.signal && { signal: context.signal }) };
  let settings = firstSettings(options);
  const evidence: Evidence[] = [];
  const outputs: { readonly name: string; readonly content: string }[] = [];
  const usages: (Usage | undefined)[] = [];
  let cut: LogCut | undefined;

  /** Settles how to ask again after a refusal, or throws it. */
  function yieldTo(
    error: unknown,
    name: string,
    prompt: LogPrompt,
    structured: boolean,
    halvings: number,
  ): "cut" | "text" {
    if (isContextOverflow(error)) {
      if (halvings === MOST_HALVINGS) throw stillTooLong(error, prompt, halvings);
      const logBudget = smallerBudget(prompt, error, options.maxTokens);
      settings = { ...settings, logBudget };
      const text = `${name}: the server refused ${prompt.logCharacters} characters of log as too long (${error.what}); cut to ${logBudget}`;
      evidence.push({ text });
      return "cut";
    }
    if (!structured || !isError(error, "MODEL_REFUSED_REQUEST")) throw error;
    settings = { ...settings, form: "text" };
    evidence.push({ text: `${name}: the server refused structured output (${error.what}); asked again for text` });
    return "text";
  }

  return {
    note: (remark) => void evidence.push(remark),
    async ask({ name, prompt: build, schema }) {
      for (let halvings = 0; ; ) {
        const structured = schema !== undefined && settings.form === "json";
        const prompt = build({ ...settings, form: structured ? "json" : "text" });
        const request: ChatRequest = {
          messages: prompt.messages,
          ...samplingParameters(options),
          ...(structured && { responseFormat: { type: "json_schema", ...schema } }),
        };
        let response: ChatResponse;
        try {
          response = await model.complete(request, callOptions);
        } catch (error) {
          if (yieldTo(error, name, prompt, structured, halvings) === "cut") halvings++;
          continue;
        }
        outputs.push({ name, content: response.content });
        usages.push(response.usage);
        cut = larger(cut, prompt.cut);
        const ending = ENDINGS[response.finishReason];
        if (ending !== undefined) evidence.push({ text: `${name}: ${ending}` });
        return response;
      }
    },
    totals: () => ({
      evidence: [...evidence],
      calls: outputs.length,
      ...sum(usages),
      ...(outputs.length > 0 && { rawOutput: transcript(outputs) }),
      ...(cut && { cut }),
    }),
  };
}

const ENDINGS: Partial<Record<ChatResponse["finishReason"], string>> = {
  length: "the output reached its token limit (finish reason length)",
  content_filter: "the server's content filter ended the output (finish reason content_filter)",
};

/** No sum where one call lacks its usage: it would look like the whole. */
function sum(usages: readonly (Usage | undefined)[]): { usage?: Usage } {
  const total = { promptTokens: 0, completionTokens: 0 };
  for (const usage of usages) {
    if (usage === undefined) return {};
    total.promptTokens += usage.promptTokens;
    total.completionTokens += usage.completionTokens;
  }
  return usages.length === 0 ? {} : { usage: total };
}

/** Of several prompts the one that lost most stands for all. */
function larger(a: LogCut | undefined, b: LogCut | undefined): LogCut | undefined {
  return a === undefined || (b !== undefined && b.charactersCut > a.charactersCut) ? b : a;
}

/** The one output as it came, or several under their names. */
function transcript(outputs: readonly { readonly name: string; readonly content: string }[]): string {
  const [first] = outputs;
  if (outputs.length === 1 && first !== undefined) return first.content;
  return outputs.map(({ name, content }) => `[${name}]\n${content}\n`).join("\n");
}

function stillTooLong(error: RootstepError, prompt: LogPrompt, halvings: number): RootstepError {
  return new RootstepError(error.code, {
    what: `${error.what}; the log had been cut ${halvings} times, to ${prompt.logCharacters} characters`,
    where: error.where,
    hint: "Set the method's logBudget (characters) to what the model's context holds, or lower maxTokens.",
    cause: error,
  });
}
