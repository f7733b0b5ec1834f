import { z } from "zod";
import { isError } from "../../src/errors.ts";
import { answerText, isRefusal } from "../../src/methods/shared/answer-text.ts";
import { jsonObjects } from "../../src/methods/shared/json-objects.ts";
import type { CallOptions, ChatMessage, ChatModel, ChatRequest, ChatResponse } from "../../src/models/chat-model.ts";

const answerSchema = z.object({ action: z.string().nullable(), reason: z.string().nullish() });

/** The same as JSON Schema, for servers that hold an answer to it. `action` is null where the model declines. */
const ACTION_SCHEMA = {
  type: "object",
  properties: { action: { type: ["string", "null"] }, reason: { type: "string" } },
  required: ["action", "reason"],
  additionalProperties: false,
} as const;

/** What a model answered: an action, or why there is none. */
export type ActionAnswer =
  | { readonly kind: "action"; readonly action: string }
  | { readonly kind: "nonsense" | "refused"; readonly why: string };

/**
 * Asks for one action, as structured output where the server takes it, else as plain JSON.
 *
 * @throws RootstepError MODEL_*, BUDGET_REACHED, INTERRUPTED
 */
export async function askForAction(
  model: ChatModel,
  messages: readonly ChatMessage[],
  options: CallOptions,
): Promise<ActionAnswer> {
  const responseFormat = { type: "json_schema", name: "corrected_action", schema: ACTION_SCHEMA } as const;
  const read = async (request: ChatRequest): Promise<ActionAnswer> =>
    withoutEcho(readAction(await model.complete(request, options)), messages);
  try {
    return await read({ messages, responseFormat });
  } catch (error) {
    if (!isError(error, "MODEL_REFUSED_REQUEST")) throw error;
    return await read({ messages });
  }
}

/** Words that an action may share with the instructions without having been copied from them. */
const WORDS_IN_COMMON = 2;

/** Small models fill in what they were told to fill in: words of the instructions are no step. */
function withoutEcho(answer: ActionAnswer, [instructions]: readonly ChatMessage[]): ActionAnswer {
  if (answer.kind !== "action" || instructions?.role !== "system") return answer;
  const isCopied = answer.action.split(/\s+/u).length > WORDS_IN_COMMON && instructions.content.includes(answer.action);
  return isCopied ? { kind: "nonsense", why: "the action repeats the instructions" } : answer;
}

/** Reads the last JSON object with an action, past reasoning (`<think>`, also without its opening tag), fences and prose. */
export function readAction({ content, finishReason }: Pick<ChatResponse, "content" | "finishReason">): ActionAnswer {
  if (finishReason === "content_filter") return { kind: "refused", why: "the server's content filter withheld it" };
  const answer = answerText(content);
  if ("failure" in answer) return { kind: "nonsense", why: answer.failure };
  const found = jsonObjects(answer.text).flatMap(({ value }) => {
    const parsed = answerSchema.safeParse(value);
    return parsed.success ? [parsed.data] : [];
  });
  const action = found.at(-1)?.action;
  if (action === null) return { kind: "refused", why: found.at(-1)?.reason ?? "the model declined" };
  if (action !== undefined && action.trim() !== "") return { kind: "action", action: action.trim() };
  const refuses = found.length === 0 && isRefusal(answer.text);
  if (refuses || /\bI (?:refuse|decline|won't|will not)\b/iu.test(answer.text)) {
    return { kind: "refused", why: "the model declined" };
  }
  const cut = finishReason === "length" ? " (the output reached its token limit)" : "";
  return { kind: "nonsense", why: `the answer is not the JSON asked for${cut}` };
}
