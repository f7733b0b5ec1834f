import { RootstepError } from "../errors.ts";
import { throwIfInterrupted, untilInterrupted } from "../interruption.ts";
import type { CallOptions, ChatModel, ChatRequest, ChatResponse } from "./chat-model.ts";

import { emitWhole } from "./emit-whole.ts";

/** What a script answers: the text, parts of a response, an error to throw, or a function of the request. */
export type ScriptedAnswer =
  | string
  | Partial<ChatResponse>
  | Error
  | ((request: ChatRequest, options: CallOptions) => ScriptedAnswer | Promise<ScriptedAnswer>);

export interface ScriptRule {
  /** Text that the last message holds, a pattern it matches, or any test of the request; default: every request. */
  readonly when?: string | RegExp | ((request: ChatRequest, options: CallOptions) => boolean);
  readonly answer: ScriptedAnswer;
  /** How often the rule answers; default without end. */
  readonly times?: number;
}

export interface ScriptedModel extends ChatModel {
  /** Every request it got, in order. */
  readonly requests: readonly { readonly request: ChatRequest; readonly options: CallOptions }[];
}

const isRule = (entry: ScriptRule | ScriptedAnswer): entry is ScriptRule =>
  typeof entry === "object" && !(entry instanceof Error) && "answer" in entry;

/**
 * A model that answers from a script: the first entry that matches and is not used up. A bare answer is a rule for any
 * request, once, so a list of bare answers is a queue.
 * @throws RootstepError SCRIPT_EXHAUSTED (from `complete`) where no entry matches
 */
export function scriptedModel(script: readonly (ScriptRule | ScriptedAnswer)[], id = "scripted"): ScriptedModel {
  const rules = script.map((entry) => {
    const rule: ScriptRule = isRule(entry) ? entry : { answer: entry, times: 1 };
    return { rule, left: rule.times ?? Number.POSITIVE_INFINITY };
  });
  const requests: { request: ChatRequest; options: CallOptions }[] = [];
  return {
    id,
    requests,
    async complete(request, options = {}) {
      throwIfInterrupted(options.signal, id);
      requests.push({ request, options });
      const match = rules.find(({ rule, left }) => left > 0 && matches(rule, request, options));
      if (match === undefined) {
        const last = request.messages.at(-1)?.content ?? "";
        throw new RootstepError("SCRIPT_EXHAUSTED", {
          what: `No rule left for request ${requests.length}, whose last message begins "${last.slice(0, 80)}"`,
          where: id,
        });
      }
      match.left -= 1;
      const answer = settle(match.rule.answer, request, options);
      const response = toResponse(await untilInterrupted(answer, options.signal, id), id);
      emitWhole(response, options.onDelta);
      return response;
    },
  };
}

function matches({ when }: ScriptRule, request: ChatRequest, options: CallOptions): boolean {
  if (when === undefined) return true;
  if (typeof when === "function") return when(request, options);
  const last = request.messages.at(-1)?.content ?? "";
  return typeof when === "string" ? last.includes(when) : when.test(last);
}

type PlainAnswer = Exclude<ScriptedAnswer, (...args: never[]) => unknown>;

async function settle(answer: ScriptedAnswer, request: ChatRequest, options: CallOptions): Promise<PlainAnswer> {
  return typeof answer === "function" ? settle(await answer(request, options), request, options) : answer;
}

function toResponse(answer: PlainAnswer, id: string): ChatResponse {
  if (answer instanceof Error) throw answer;
  const given = typeof answer === "string" ? { content: answer } : answer;
  const toolCalls = given.toolCalls ?? [];
  return {
    content: "",
    finishReason: toolCalls.length > 0 ? "tool_calls" : "stop",
    model: id,
    ...given,
    toolCalls,
  };
}
