import { RootstepError } from "../../src/errors.ts";
import { firstDifference } from "./difference.ts";
import { type Asked, createMatcher, type MatchLevel, type MatchOptions, type Recording } from "./matcher.ts";
import type { SharedPrefix } from "./prefix.ts";

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
  readonly cut?: ReplayCut | undefined;
  /** Shared with the other replays of the tape; default: there are none. */
  readonly shared?: SharedPrefix | undefined;
}

export interface ReplayCut {
  /** The call in whose place the action stands; without an action the first that is not from the tape. */
  readonly at: number;
  /** Call `at` is answered with something else than its recording. */
  readonly action: boolean;
  /**
   * The calls that come from the tape, where agents run side by side and those of the steps before the cut are not just
   * the calls before `at`. Default: the calls before `at`.
   */
  readonly prefix?: ReadonlySet<number> | undefined;
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
  const { cut, shared } = options;
  const isPrefix = ({ index }: R): boolean => cut === undefined || (cut.prefix?.has(index) ?? index < cut.at);
  const isAction = ({ index }: R): boolean => cut?.action === true && index === cut.at;
  const known = recordings.filter((recording) => isPrefix(recording) || isAction(recording));
  const matcher = createMatcher(known, { ...options, bindings: shared?.bindings });
  shared?.addPart(() => matcher.left === 0);
  const isDone = (): boolean => matcher.left === 0 && (shared === undefined || shared.isDone);
  const levels: Record<MatchLevel, number> = { L0: 0, L1: 0, L2: 0 };
  let later: Set<string> | undefined;

  /** True for a request that the recording holds after the cut. */
  const isLater = (asked: Asked): boolean => {
    later ??= new Set(
      recordings
        .filter((recording) => !isPrefix(recording) && !isAction(recording))
        .map(({ lane, key }) => `${lane} ${key}`),
    );
    return later.has(`${asked.lane} ${asked.key()}`);
  };

  return {
    decide(asked) {
      const match = matcher.take(asked);
      if (match !== undefined) {
        levels[match.level]++;
        return { kind: isAction(match.recording) ? "action" : "tape", ...match };
      }
      const played = known.length - matcher.left;
      if (cut !== undefined && isDone()) return { kind: "live" };
      if (cut === undefined && matcher.left === 0) {
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
      return isDone();
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
