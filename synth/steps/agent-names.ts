import type { StoredCall } from "../tape/folder-schema.ts";
import type { PromptMessage } from "./prompt.ts";

/** What is known of who asked. */
export interface CallOfAgent {
  readonly lane: string;
  readonly laneBy: StoredCall["laneBy"];
  readonly prompt: readonly PromptMessage[];
  readonly request: Readonly<Record<string, unknown>>;
}

/** An adapter's own naming; undefined where it has no better name. */
export type NameAgent = (call: CallOfAgent) => string | undefined;

export interface AgentNames {
  /** By position of the calls. */
  readonly agents: readonly string[];
  /** Lanes by name. */
  readonly lanes: Readonly<Record<string, readonly string[]>>;
}

/**
 * The agent of each call. An adapter's name comes first; a lane told by URL, key or wrapper has the agent's name already;
 * one told by its prompt is named after what the prompt says of the agent. A name in the prompt ("named Alice") means the
 * same agent in all lanes; a mere role ("You are a helpful assistant") is numbered where several lanes have it.
 */
export function nameAgents(calls: readonly CallOfAgent[], nameAgent?: NameAgent): AgentNames {
  const byLane = new Map<string, string>();
  const lanesOfRole = new Map<string, string[]>();
  const agents = calls.map((call) => {
    const given = nameAgent?.(call);
    if (given !== undefined && given.trim() !== "") return given;
    const known = byLane.get(call.lane) ?? laneName(call, lanesOfRole);
    byLane.set(call.lane, known);
    return known;
  });
  const lanes: Record<string, string[]> = {};
  calls.forEach(({ lane }, position) => {
    const agent = agents[position] ?? lane;
    const known = lanes[agent] ?? [];
    if (!known.includes(lane)) lanes[agent] = [...known, lane];
  });
  return { agents, lanes };
}

function laneName({ lane, laneBy, prompt }: CallOfAgent, lanesOfRole: Map<string, string[]>): string {
  if (laneBy !== "prompt") return lane;
  const name = nameIn(prompt);
  if (name !== undefined) return name;
  const role = roleIn(prompt);
  if (role === undefined) return lane;
  const lanes = lanesOfRole.get(role) ?? [];
  lanesOfRole.set(role, [...lanes, lane]);
  return lanes.length === 0 ? role : `${role} ${lanes.length + 1}`;
}

/** "a Product Manager, named Alice", "a helpful agent named 'search_agent'", "Your name is Bob". */
const NAMES = [/\bnamed\s+["'`]?([\p{L}\p{N}_-]{1,40})/u, /\b[Yy]our name is\s+["'`]?([\p{L}\p{N}_-]{1,40})/u];

/** "You are Senior Researcher.", "You are a careful planner who …": up to the end of the phrase. */
const ROLE =
  /\bYou(?: are|['’]re)\s+(?:an?\s+|the\s+)?([\p{L}\p{N}][\p{L}\p{N} _/-]{0,47}?)(?=\s*(?:[.,:;!?\n(]|$)|\s+(?:who|that|which|and|in|on|of|with|for|to|from|working|responsible|tasked)\b)/u;

/** The name may stand in the first message of the user, as smolagents' managed agents have it. */
function nameIn(prompt: readonly PromptMessage[]): string | undefined {
  const places = [systemText(prompt), prompt.find(({ role }) => role === "user")?.text ?? ""];
  for (const place of places) {
    for (const pattern of NAMES) {
      const name = pattern.exec(place.slice(0, LOOK_AT))?.[1];
      if (name !== undefined) return name;
    }
  }
  return undefined;
}

function roleIn(prompt: readonly PromptMessage[]): string | undefined {
  return ROLE.exec(systemText(prompt).slice(0, LOOK_AT))?.[1]?.trim();
}

/** A prompt says who the agent is at its beginning; further on, names are those of others. */
const LOOK_AT = 400;

const systemText = (prompt: readonly PromptMessage[]): string =>
  prompt.find(({ role }) => role === "system")?.text ?? "";
