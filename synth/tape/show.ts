import { type AnswerSummary, summarizeAnswer } from "./answer-text.ts";
import { foldRetries } from "./fold.ts";
import type { StoredCall } from "./folder-schema.ts";
import type { TapeFolder } from "./loader.ts";

/** One row of a tape as people read it. */
export interface ShownCall {
  /** The number to give to `--cut`; absent for attempts that are not replayed. */
  readonly call: number | undefined;
  readonly lane: string;
  readonly endpoint: StoredCall["endpoint"];
  readonly model: string | undefined;
  readonly status: number;
  readonly outcome: StoredCall["response"]["outcome"];
  readonly from: StoredCall["from"];
  readonly promptTokens: number | undefined;
  readonly completionTokens: number | undefined;
  readonly streamed: boolean;
  /** retried: a later attempt took its place; failed: it ended in 429 or 5xx for good. */
  readonly kept: "yes" | "retried" | "failed";
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
    streamed: (response.headers["content-type"] ?? "").startsWith("text/event-stream"),
    kept,
    words: firstWords(answer),
  };
  return { index: call.index, row };
}

function firstWords({ text, toolCalls, error }: AnswerSummary): string {
  const whole = (error ?? [text, ...toolCalls].filter((part) => part !== "").join(" ")).replace(/\s+/gu, " ").trim();
  return whole.length > WORDS_LENGTH ? `${whole.slice(0, WORDS_LENGTH - 1)}…` : whole;
}
