import { canonicalJson } from "../../src/models/content-key.ts";
import type { AnsweredToolCall } from "../tape/answer-text.ts";
import type { AgentCall } from "./recorded-run.ts";

/** Results of tool calls by the call that made them. */
export type ToolResults = ReadonlyMap<AnsweredToolCall, string>;

interface Made {
  readonly call: AnsweredToolCall;
  readonly lane: string;
  readonly answeredAt: number;
}

interface Found {
  readonly id: string;
  readonly result: string;
  /** How the conversation quotes the call, where it does. */
  readonly quoted: { readonly name: string; readonly arguments: string } | undefined;
}

/**
 * Finds what tools answered: results stand in later requests, and in every request that still quotes them. Each is attached
 * to its call, once. Ids need not be unique (some servers count from call_0 in each answer): of calls with one id the last
 * result of a conversation belongs to the latest call before it, the one before to the call before, where name and
 * arguments agree as the conversation quotes them.
 *
 * @param calls of one run
 */
export function toolResults(calls: readonly AgentCall[]): ToolResults {
  const made = new Map<string, Made[]>();
  for (const { answer, stored, answeredAt } of [...calls].sort((a, b) => a.answeredAt - b.answeredAt)) {
    for (const call of answer.toolCalls) {
      const same = made.get(call.id) ?? [];
      same.push({ call, lane: stored.lane, answeredAt });
      made.set(call.id, same);
    }
  }
  const results = new Map<AnsweredToolCall, string>();
  for (const { prompt, stored, askedAt } of [...calls].sort((a, b) => a.askedAt - b.askedAt)) {
    for (const [id, found] of resultsIn(prompt)) {
      const before = (made.get(id) ?? []).filter(({ answeredAt }) => answeredAt <= askedAt);
      // The agent's own calls first; a result may be handed to another agent.
      const own = before.filter(({ lane }) => lane === stored.lane);
      attach(found, own.length > 0 ? own : before, results);
    }
  }
  return results;
}

function resultsIn(prompt: AgentCall["prompt"]): Map<string, Found[]> {
  const quoted = new Map<string, Found["quoted"]>();
  const found = new Map<string, Found[]>();
  for (const { toolCalls, toolCallId, text, role } of prompt) {
    for (const call of toolCalls) quoted.set(call.id, call);
    if (role !== "tool" || toolCallId === undefined) continue;
    const all = found.get(toolCallId) ?? [];
    all.push({ id: toolCallId, result: text, quoted: quoted.get(toolCallId) });
    found.set(toolCallId, all);
  }
  return found;
}

/** From the end of the conversation and of the calls backwards. */
function attach(found: readonly Found[], made: readonly Made[], results: Map<AnsweredToolCall, string>): void {
  let at = made.length - 1;
  for (const { result, quoted } of [...found].reverse()) {
    while (at >= 0 && !agrees(made[at]?.call, quoted)) at--;
    const call = made[at--]?.call;
    if (call === undefined) return;
    if (!results.has(call)) results.set(call, result);
  }
}

function agrees(call: AnsweredToolCall | undefined, quoted: Found["quoted"]): boolean {
  if (call === undefined || quoted === undefined) return true;
  return call.name === quoted.name && sameJson(call.arguments, quoted.arguments);
}

/** Frameworks write arguments anew when they quote them. */
function sameJson(a: string, b: string): boolean {
  if (a === b) return true;
  try {
    return canonicalJson(JSON.parse(a)) === canonicalJson(JSON.parse(b));
  } catch {
    return false;
  }
}
