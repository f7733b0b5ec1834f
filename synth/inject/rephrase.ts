import type { Domain } from "./operator.ts";

/** `Advice: `, `Hop 2: `. */
const LABEL = /^\w+(?: \d+)?: /u;

/**
 * The placebo of an injection: the same action said slightly otherwise. Its effect is what editing alone does. Code gets a
 * blank line, a labelled line of a game or a search a wider space after its label (rules read the end of the line, and what
 * is noted or looked up stays whole), all else a full stop more or less.
 */
export function rephrased(action: string, domain: Domain | undefined): string {
  const fence = action.lastIndexOf("\n```");
  if (fence > 0) return `${action.slice(0, fence)}\n${action.slice(fence)}`;
  if (domain === "code") return `${action}\n# end`;
  const [label] = LABEL.exec(action) ?? [];
  if (label !== undefined && (domain === "game" || domain === "search"))
    return `${label} ${action.slice(label.length)}`;
  return action.endsWith(".") ? action.slice(0, -1) : `${action}.`;
}
