import type { Tape } from "../tape/tape.ts";

/** What the agent was shown at a step: its request without the instructions. What tools and the world answered is in it. */
export function shownAt({ calls }: Pick<Tape, "calls">, step: number): string {
  const messages = calls[step]?.request.messages ?? [];
  return messages
    .filter(({ role }) => role !== "system")
    .map(({ content }) => content)
    .join("\n");
}
