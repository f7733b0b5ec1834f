import type { Domain } from "./operator.ts";

/**
 * The placebo of an injection: the same action said slightly otherwise. Its effect is what editing alone does. Code gets a
 * blank line, a line of a game a wider space after its label (its rules read the end of the line), all else a full stop
 * more or less.
 */
export function rephrased(action: string, domain: Domain | undefined): string {
  const fence = action.lastIndexOf("\n```");
  if (fence > 0) return `${action.slice(0, fence)}\n${action.slice(fence)}`;
  if (domain === "code") return `${action}\n# end`;
  if (domain === "game" && /^\w+: /u.test(action)) return action.replace(": ", ":  ");
  return action.endsWith(".") ? action.slice(0, -1) : `${action}.`;
}
