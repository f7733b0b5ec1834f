import { RootstepError } from "../../src/errors.ts";
import { firstDifference } from "./difference.ts";
import { type Asked, createMatcher, type MatchLevel, type MatchOptions, type Recording } from "./matcher.ts";

/** What a request is answered with. */
export type Decision<R> =
  | { readonly kind: "tape" | "action"; readonly recording: R; readonly level: MatchLevel }
  | { readonly kind: "live" }
  /**
   * The request belongs after the cut, but calls before it are still to come: agents run side by side. It waits until
   * `prefixDone`, or fails with this error.
   */
  | { readonly kind: "held"; readonly error: RootstepError };

export interface ReplayOptions extends MatchOptions {
  /** Calls before `at` come from the tape; `action`: call `at` is answered with something else than its recording. */
  readonly cut?: { readonly at: number; readonly action: boolean } | undefined;
}

/**
 * Which answer each request of a rerun gets: from the tape before the cut, the action at it, live after it. Both fronts,
 * in process and proxy, decide by this. Before the cut nothing is ever live.
 */
export interface Replay<R extends Recording> {
  /** @throws RootstepError REPLAY_DIVERGED with the first difference; TAPE_EXHAUSTED where there is no cut to go live after */
  decide(asked: Asked): Decision<R>;
  /** The program dropped that answer before it had all of it; its retry gets it again. */
  giveBack(recording: R, level: MatchLevel): void;
  /** This run's ids in the place of recorded ones; undefined while all ids are the same. */
  rewriter(): ((recorded: string) => string) | undefined;
  /** Calls answered from the tape or with the action, by level. */
  readonly levels: Readonly<Record<MatchLevel, number>>;
  /** Recordings before the cut (and the call at it, if an action is put there) that were not asked for yet. */
  readonly unplayed: number;
  readonly prefixDone: boolean;
}

export function createReplay<R extends Recording>(recordings: readonly R[], options: ReplayOptions = {}): Replay<R> {
  const { cut } = options;
  const end = cut === undefined ? recordings.length : Math.min(cut.at, recordings.length);
  const last = cut?.action === true && end < recordings.length ? end + 1 : end;
  const matcher = createMatcher(recordings.slice(0, last), options);
  const levels: Record<MatchLevel, number> = { L0: 0, L1: 0, L2: 0 };
  let later: Set<string> | undefined;

  /** True for a request that the recording holds after the cut. */
  const isLater = (asked: Asked): boolean => {
    later ??= new Set(recordings.slice(last).map(({ lane, key }) => `${lane} ${key}`));
    return later.has(`${asked.lane} ${asked.key()}`);
  };

  return {
    decide(asked) {
      const match = matcher.take(asked);
      if (match !== undefined) {
        levels[match.level]++;
        return { kind: match.recording.index < end ? "tape" : "action", ...match };
      }
      const played = last - matcher.left;
      if (matcher.left === 0) {
        if (cut !== undefined) return { kind: "live" };
        throw new RootstepError("TAPE_EXHAUSTED", {
          what: `${asked.lane} asked for call ${played}; the tape holds ${recordings.length}`,
        });
      }
      const sameLane = matcher.next(asked.lane);
      const error = diverged(asked, sameLane ?? matcher.next(), played);
      if (cut !== undefined && (sameLane === undefined || isLater(asked))) return { kind: "held", error };
      throw error;
    },
    giveBack(recording, level) {
      matcher.giveBack(recording);
      levels[level]--;
    },
    rewriter: () => matcher.bindings.rewriter(),
    levels,
    get unplayed() {
      return matcher.left;
    },
    get prefixDone() {
      return matcher.left === 0;
    },
  };
}

/** Says what the tape expected and where the two requests part, so that the user finds the nondeterminism. */
function diverged(asked: Asked, next: Recording | undefined, played: number): RootstepError {
  const expected = next === undefined ? "no further call" : `call ${next.index} of ${next.lane}`;
  const difference = next?.lane === asked.lane ? explain(next, asked) : "";
  return new RootstepError("REPLAY_DIVERGED", {
    what: `the tape has ${expected} next, the program asks as ${asked.lane}${difference}`,
    where: `request ${asked.key().slice(0, 12)}, after ${played} replayed calls`,
  });
}

function explain(recorded: Recording, asked: Asked): string {
  const found = firstDifference(parsed(recorded.text()), parsed(asked.text()));
  return `: ${found === undefined ? "the same text with other ids" : `first difference at ${found}`}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // a body that is no JSON is compared as text
  }
}
