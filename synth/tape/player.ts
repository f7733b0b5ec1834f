import { RootstepError } from "../../src/errors.ts";
import type { CallOptions, ChatModel, ChatRequest, ChatResponse } from "../../src/models/chat-model.ts";
import { canonicalJson } from "../../src/models/content-key.ts";
import type { Asked, MatchLevel, MatchOptions, Recording } from "./matcher.ts";
import { createReplay } from "./replay.ts";
import { requestHash, type Tape, type TapedCall, UNNAMED_LANE } from "./tape.ts";

/** Where a replay stops following its tape. */
export interface Cut {
  /** Calls before this index are answered from the tape. */
  readonly at: number;
  /** What call `at` answers instead of its recording: the corrected or perturbed action. Without it that call is live. */
  readonly action?: string;
}

export interface PlayerOptions extends MatchOptions {
  readonly tape: Tape;
  /** Absent: the whole tape is replayed and any further request is an error (identity gate). */
  readonly cut?: Cut;
  /** Answers after the cut. */
  readonly live?: ChatModel;
}

export interface Player {
  readonly model: ChatModel;
  /** Calls of this run so far: replayed, substituted and live. */
  calls(): readonly TapedCall[];
  readonly liveCalls: number;
  /** Calls from the tape by how they matched. */
  readonly levels: Readonly<Record<MatchLevel, number>>;
  /** Calls of the tape before the cut that the program has not asked for (0 after a complete replay). */
  unplayed(): number;
}

interface InProcessRecording extends Recording {
  readonly call: TapedCall;
}

/** A tape is replayed once per rerun, and there are many: its hashes are made once. */
const recordingsOf = new WeakMap<Tape, readonly InProcessRecording[]>();

/**
 * The in-process front of a recorded tape. Requests are matched by their whole content (L0), else with ids and clocks
 * masked (L1); see matcher.ts. Before the cut nothing is ever answered live: a request that does not match is an error.
 *
 * @throws RootstepError (from `model.complete`) REPLAY_DIVERGED with the first difference; TAPE_EXHAUSTED
 */
export function createPlayer({ tape, cut, live, ...matching }: PlayerOptions): Player {
  const replay = createReplay(recordingsIn(tape), {
    ...matching,
    cut: cut === undefined ? undefined : { at: cut.at, action: cut.action !== undefined },
  });
  const calls: TapedCall[] = [];
  let begun = 0;
  let liveCalls = 0;

  const answer = (request: ChatRequest, options: CallOptions | undefined): ChatResponse | Promise<ChatResponse> => {
    const decision = replay.decide(askedFor(request, options?.agent ?? UNNAMED_LANE));
    switch (decision.kind) {
      case "tape":
        return rewritten(decision.recording.call.response, replay.rewriter());
      case "action":
        return { ...decision.recording.call.response, content: cut?.action ?? "", toolCalls: [] };
      case "held": // in process nothing else is under way that could make the prefix complete
        throw decision.error;
      case "live":
        if (live === undefined) {
          throw new RootstepError("TAPE_EXHAUSTED", { what: `call ${begun - 1} is past the cut and no model is live` });
        }
        liveCalls++;
        return live.complete(request, options);
    }
  };

  return {
    model: {
      id: `replay:${live?.id ?? "tape"}`,
      async complete(request, options) {
        const index = begun++;
        const response = await answer(request, options);
        calls[index] = { index, lane: options?.agent ?? UNNAMED_LANE, request, response };
        return response;
      },
    },
    calls: () => calls.filter((call) => call !== undefined),
    get liveCalls() {
      return liveCalls;
    },
    levels: replay.levels,
    unplayed: () => replay.unplayed,
  };
}

function recordingsIn(tape: Tape): readonly InProcessRecording[] {
  const known = recordingsOf.get(tape);
  if (known !== undefined) return known;
  const recordings = tape.calls.map((call, index) => {
    const key = requestHash(call.request);
    return { index, lane: call.lane, raw: key, key, text: () => canonicalJson(call.request), call };
  });
  recordingsOf.set(tape, recordings);
  return recordings;
}

function askedFor(request: ChatRequest, lane: string): Asked {
  const key = requestHash(request);
  return { lane, raw: key, key: () => key, text: () => canonicalJson(request) };
}

/** The recorded answer with this run's ids in it, in tool calls too. */
function rewritten(response: ChatResponse, rewrite: ((text: string) => string) | undefined): ChatResponse {
  if (rewrite === undefined) return response;
  return {
    ...response,
    content: rewrite(response.content),
    ...(response.reasoning === undefined ? {} : { reasoning: rewrite(response.reasoning) }),
    toolCalls: response.toolCalls.map((call) => ({ ...call, arguments: rewrite(call.arguments) })),
  };
}
