import { isRecord } from "../../src/is-record.ts";
import type { Usage } from "../../src/trajectory/schema.ts";
import { recordingsOf } from "../proxy/tape-recordings.ts";
import { type AnswerSummary, summarizeAnswer } from "../tape/answer-text.ts";
import type { StoredCall } from "../tape/folder-schema.ts";
import type { TapeFolder } from "../tape/loader.ts";
import { type NameAgent, nameAgents } from "./agent-names.ts";
import { type PromptMessage, promptOf, promptText } from "./prompt.ts";

/** A call of a model as a step policy sees it. */
export interface AgentCall {
  /** The number that `--cut` takes. */
  readonly number: number;
  readonly agent: string;
  readonly stored: StoredCall;
  /** What the agent was shown. */
  readonly prompt: readonly PromptMessage[];
  readonly answer: AnswerSummary;
  /** What the model said, without an echo of its prompt. */
  readonly content: string;
  readonly usage: Usage | undefined;
  /** Milliseconds after the start of the recording. */
  readonly askedAt: number;
  readonly answeredAt: number;
}

/** A run as its tape has it. */
export interface RecordedRun {
  /**
   * Calls that can be steps of an agent, in the order in which they were answered (of two at once, that which was asked
   * first): everything an agent knew when it acted stands before it. Retried attempts are folded; embeddings and lists of
   * models are no steps.
   */
  readonly calls: readonly AgentCall[];
  /** Calls that ended in 429 or 5xx for good. */
  readonly failed: number;
  /** Lanes that agents were named after, by name. */
  readonly lanes: Readonly<Record<string, readonly string[]>>;
}

export function recordedRun(tape: TapeFolder, nameAgent?: NameAgent): RecordedRun {
  const { calls, failed } = recordingsOf(tape);
  const acting = calls.filter(({ call }) => call.endpoint !== "embeddings" && call.endpoint !== "models");
  const asked = acting.map(({ call, index, text }) => {
    const request = parsedRequest(text());
    return { call, number: index, request, prompt: promptOf(call.endpoint, request) };
  });
  const names = nameAgents(
    asked.map(({ call, request, prompt }) => ({ lane: call.lane, laneBy: call.laneBy, prompt, request })),
    nameAgent,
  );
  const agentCalls = asked.map(({ call, number, request, prompt }, position): AgentCall => {
    const answer = summarizeAnswer(tape.bodies.get(call.response.body).toString("utf8"));
    return {
      number,
      agent: names.agents[position] ?? call.lane,
      stored: call,
      prompt,
      answer,
      content: withoutEcho(answer.text, request),
      usage: usageOf(answer),
      askedAt: call.askedAt,
      answeredAt: call.askedAt + call.tookMs,
    };
  });
  return {
    calls: agentCalls.sort((a, b) => a.answeredAt - b.answeredAt || a.number - b.number),
    failed: failed.length,
    lanes: names.lanes,
  };
}

function parsedRequest(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {}; // what is no JSON got an error for an answer
  }
}

/** Completions answer with the prompt before their text where they are asked to. */
function withoutEcho(text: string, request: Readonly<Record<string, unknown>>): string {
  if (request.echo !== true) return text;
  const prompt = promptText(request.prompt);
  return text.startsWith(prompt) ? text.slice(prompt.length) : text;
}

function usageOf({ promptTokens, completionTokens }: AnswerSummary): Usage | undefined {
  if (promptTokens === undefined && completionTokens === undefined) return undefined;
  return { promptTokens: promptTokens ?? 0, completionTokens: completionTokens ?? 0 };
}
