import { isDeepStrictEqual } from "node:util";
import { RootstepError } from "../../src/errors.ts";
import type { CallOptions, ChatModel, ChatRequest, ChatResponse } from "../../src/models/chat-model.ts";
import { requestHash, type Tape, type TapedCall } from "./tape.ts";

/** Where a replay stops following its tape. */
export interface Cut {
  /** Calls before this index are answered from the tape. */
  readonly at: number;
  /** What call `at` answers instead of its recording: the corrected or perturbed action. Without it that call is live. */
  readonly action?: string;
}

export interface PlayerOptions {
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
  /** Calls of the tape before the cut that the program has not asked for (0 after a complete replay). */
  unplayed(): number;
}

/**
 * The in-process front of a recorded tape. A request is matched to the next recording of its lane by equality of the
 * whole request (L0). Before the cut nothing is ever answered live: a request that does not match is an error.
 *
 * @throws RootstepError (from `model.complete`) REPLAY_DIVERGED with the first difference; TAPE_EXHAUSTED
 */
export function createPlayer({ tape, cut, live }: PlayerOptions): Player {
  const end = cut === undefined ? tape.calls.length : Math.min(cut.at, tape.calls.length);
  const calls: TapedCall[] = [];
  const played = new Set<number>();
  let begun = 0;
  let liveCalls = 0;

  const answer = (request: ChatRequest, options: CallOptions | undefined): ChatResponse | Promise<ChatResponse> => {
    const lane = options?.agent ?? "agent";
    if (played.size < end) {
      const recorded = tape.calls.find((call) => call.lane === lane && !played.has(call.index));
      if (recorded === undefined || recorded.index >= end) throw diverged(tape, played, lane, request);
      if (!sameRequest(recorded.request, request)) throw diverged(tape, played, lane, request, recorded);
      played.add(recorded.index);
      return recorded.response;
    }
    const recorded = tape.calls[end];
    if (cut?.action !== undefined && begun === end + 1 && recorded !== undefined) {
      if (recorded.lane !== lane || !sameRequest(recorded.request, request)) {
        throw diverged(tape, played, lane, request, recorded);
      }
      return { ...recorded.response, content: cut.action, toolCalls: [] };
    }
    if (cut === undefined || live === undefined) {
      throw new RootstepError("TAPE_EXHAUSTED", {
        what: `the ${lane} asked for call ${begun - 1}; the tape holds ${tape.calls.length}`,
      });
    }
    liveCalls++;
    return live.complete(request, options);
  };

  return {
    model: {
      id: `replay:${live?.id ?? "tape"}`,
      async complete(request, options) {
        const index = begun++;
        const response = await answer(request, options);
        calls[index] = { index, lane: options?.agent ?? "agent", request, response };
        return response;
      },
    },
    calls: () => calls.filter((call) => call !== undefined),
    get liveCalls() {
      return liveCalls;
    },
    unplayed: () => end - played.size,
  };
}

function sameRequest(a: ChatRequest, b: ChatRequest): boolean {
  return isDeepStrictEqual(a, b);
}

/** Says what the tape expected and where the two requests part, so that the user finds the nondeterminism. */
function diverged(
  tape: Tape,
  played: ReadonlySet<number>,
  lane: string,
  request: ChatRequest,
  recorded?: TapedCall,
): RootstepError {
  const next = recorded ?? tape.calls.find((call) => !played.has(call.index));
  const expected = next === undefined ? "no further call" : `call ${next.index} of ${next.lane}`;
  const difference = next === undefined ? "" : `: ${firstDifference(next.request, request)}`;
  return new RootstepError("REPLAY_DIVERGED", {
    what: `the tape has ${expected} next, the program asks as ${lane}${next?.lane === lane ? difference : ""}`,
    where: `request ${requestHash(request).slice(0, 12)}, after ${played.size} replayed calls`,
  });
}

function firstDifference(recorded: ChatRequest, asked: ChatRequest): string {
  const [a, b] = [JSON.stringify(recorded), JSON.stringify(asked)];
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  const from = Math.max(0, at - 20);
  return `recorded …${a.slice(from, at + 40)}… but asked …${b.slice(from, at + 40)}…`;
}
