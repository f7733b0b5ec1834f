import type { ChatRequest } from "../../src/models/chat-model.ts";

const [HEAD, REFUSED] = ["\nAction: ", "\n\nYour last rephrasing was refused: "] as const;

/**
 * The simulator's answer to the analyzer's placebo prompt: the step with other words around it, for its lines are read by
 * their form and have no second wording. Undefined for any other request; declines where there is nothing to rephrase.
 */
export function rephrasing({ messages }: ChatRequest): string | undefined {
  const user = messages.at(-1)?.content ?? "";
  if (messages[0]?.content.startsWith("You rephrase one step") !== true) return undefined;
  const start = user.indexOf(HEAD, user.indexOf("\n\nStep to rephrase\n"));
  if (start < 0) return undefined;
  const end = user.lastIndexOf(REFUSED);
  const action = inOtherWords(user.slice(start + HEAD.length, end < 0 ? undefined : end).trim());
  return JSON.stringify({ action: action ?? null, reason: action === undefined ? "nothing is said" : "the same said" });
}

function inOtherWords(action: string): string | undefined {
  if (action === "") return undefined;
  if (/^[[{]/u.test(action)) return respaced(action);
  return `${action.startsWith("```") ? "The code, once more:\n" : "In other words, "}${action}`;
}

/** JSON has no words around it: other blanks; undefined where there are none to change. */
function respaced(action: string): string | undefined {
  try {
    const value: unknown = JSON.parse(action);
    return [JSON.stringify(value, undefined, 1), JSON.stringify(value)].find((text) => text !== action);
  } catch {
    return `In other words, ${action}`;
  }
}
