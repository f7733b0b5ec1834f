import type { Dialect } from "./dialect.ts";
import { linesIn, nextSpeaker, shownTo } from "./team-lines.ts";

/** langgraph-supervisor offers its model a tool per agent, `transfer_to_NAME`, which hands the conversation over. */
export const langgraphSupervisor: Dialect = {
  id: "langgraph-supervisor",
  read(request) {
    const offered = new Set(request.tools?.map(({ name }) => name));
    if (!offered.has("transfer_to_planner")) return undefined;
    const lines = linesIn(shownTo(request));
    const next = nextSpeaker(lines);
    if (next === undefined) return { kind: "direct", reply: { content: lines.at(-1)?.content ?? "" } };
    return { kind: "direct", reply: { content: "", toolCalls: [{ name: `transfer_to_${next}`, arguments: {} }] } };
  },
};
