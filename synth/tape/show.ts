import { toolLane } from "../tools/tool-key.ts";
import { type AnswerSummary, summarizeAnswer } from "./answer-text.ts";
import { foldRetries } from "./fold.ts";
import type { StoredCall, StoredToolExchange } from "./folder-schema.ts";
import type { TapeFolder } from "./loader.ts";

/** One row of a tape as people read it. */
export interface ShownCall {
  /** The number to give to `--cut`; absent for attempts that are not replayed. */
  readonly call: number | undefined;
  readonly lane: string;
  /** Of a model; or what a tool was asked: `GET /search?q=x`. */
  readonly endpoint: string;
  readonly model: string | undefined;
  readonly status: number;
  readonly outcome: StoredCall["response"]["outcome"];
  readonly from: StoredCall["from"];
  readonly promptTokens: number | undefined;
  readonly completionTokens: number | undefined;
  readonly streamed: boolean;
  /** retried: a later attempt took its place; failed: it ended in 429 or 5xx for good. */
  /** tool: an exchange with a tool, which is replayed but cannot be cut at. */
  readonly kept: "yes" | "retried" | "failed" | "tool";
  /** First words of the answer. */
  readonly words: string;
}

const WORDS_LENGTH = 60;

/** The calls of a tape in the order they were asked, with attempts that retries replaced. */
export function showTape(tape: TapeFolder): ShownCall[] {
  const { calls, retried, failed } = foldRetries(tape.calls);
  const rows = [
    ...calls.map((call, number) => shown(tape, call, "yes", number)),
    ...retried.map((call) => shown(tape, call, "retried")),
    ...failed.map((call) => shown(tape, call, "failed")),
    ...tape.tools.map((exchange) => shownTool(tape, exchange)),
  ];
  return rows.sort((a, b) => a.index - b.index).map(({ row }) => row);
}

function shown(tape: TapeFolder, call: StoredCall, kept: ShownCall["kept"], number?: number) {
  const { response } = call;
  const answer = summarizeAnswer(tape.bodies.get(response.body).toString("utf8"));
  const row: ShownCall = {
    call: number,
    lane: call.lane,
    endpoint: call.endpoint,
    model: answer.model,
    status: response.status,
    outcome: response.outcome,
    from: call.from,
    promptTokens: answer.promptTokens,
    completionTokens: answer.completionTokens,
    streamed: isStream(response),
    kept,
    words: firstWords(answer),
  };
  return { index: call.index, row };
}

function shownTool(tape: TapeFolder, { index, tool, agent, from, request, response }: StoredToolExchange) {
  const row: ShownCall = {
    call: undefined,
    lane: toolLane(tool, agent),
    endpoint: `${request.method} ${request.path}${request.query ?? ""}`.trim(),
    model: undefined,
    status: response.status,
    outcome: response.outcome,
    from,
    promptTokens: undefined,
    completionTokens: undefined,
    streamed: isStream(response),
    kept: "tool",
    words: shortened(tape.bodies.get(response.body).toString("utf8")),
  };
  return { index, row };
}

const isStream = ({ headers }: StoredCall["response"]): boolean =>
  (headers["content-type"] ?? "").startsWith("text/event-stream");

function firstWords({ text, toolCalls, error }: AnswerSummary): string {
  const calls = toolCalls.map((call) => `${call.name}(${call.arguments})`);
  return shortened(error ?? [text, ...calls].filter((part) => part !== "").join(" "));
}

function shortened(text: string): string {
  const line = text.replace(/\s+/gu, " ").trim();
  return line.length > WORDS_LENGTH ? `${line.slice(0, WORDS_LENGTH - 1)}…` : line;
}
