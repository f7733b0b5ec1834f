import type { ChatRequest, ChatResponse } from "../../src/models/chat-model.ts";
import { contentKey } from "../../src/models/content-key.ts";
import type { Step } from "../../src/trajectory/schema.ts";

/** Version of the tape's layout. */
export const TAPE_VERSION = 1;

/** The lane of calls that name no agent. */
export const UNNAMED_LANE = "agent";

/** One model request with the answer it got, in the order of the run. */
export interface TapedCall {
  readonly index: number;
  /** Which agent asked. Replay keeps the order within a lane. */
  readonly lane: string;
  readonly request: ChatRequest;
  readonly response: ChatResponse;
}

/** What a run asked its models and what they answered. */
export interface Tape {
  readonly version: typeof TAPE_VERSION;
  readonly calls: readonly TapedCall[];
}

/** L0 identity of a request: sha256 of its canonical JSON (RFC 8785). */
export function requestHash(request: ChatRequest): string {
  return contentKey(request);
}

/** The step policy `per-call`: every model call is one step of the agent that asked. */
export function stepsFromCalls(calls: readonly TapedCall[]): Step[] {
  return calls.map(({ index, lane, response }) => ({
    index,
    agent: lane,
    kind: "message",
    content: response.content,
    toolCalls: response.toolCalls.map((call) => ({ ...call })),
    retrieved: [],
    callIds: [String(index)],
    ...(response.usage === undefined ? {} : { usage: response.usage }),
  }));
}
