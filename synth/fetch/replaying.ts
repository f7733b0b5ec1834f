import { asRootstepError, type RootstepError } from "../../src/errors.ts";
import { createCallLog } from "../proxy/call-log.ts";
import { type ProxyCut, refuseCut } from "../proxy/cut.ts";
import { endTape } from "../proxy/record-program.ts";
import { type ReplayHandler, replayHandler } from "../proxy/replay-handler.ts";
import type { ReplayReport } from "../proxy/replay-program.ts";
import { replayReport } from "../proxy/replay-report.ts";
import { recordingsOf, type TapeRecordings } from "../proxy/tape-recordings.ts";
import { tapeHeader } from "../tape/header.ts";
import type { TapeFolder } from "../tape/loader.ts";
import type { MatchOptions } from "../tape/matcher.ts";
import { createTapeWriter } from "../tape/writer.ts";
import { asProgram, type FetchFront, isOver, openFront, type RunOutcome, secretsSeen, watched } from "./front.ts";
import { fetchUpstream, type LiveFetch } from "./upstream.ts";

export interface ReplayingFetchOptions extends MatchOptions {
  readonly tape: TapeFolder;
  /** Absent: the whole tape is replayed and nothing is live. */
  readonly cut?: ProxyCut | undefined;
  /** Asked after the cut. */
  readonly live?: LiveFetch | undefined;
  /** Live requests at most, retries counted. */
  readonly maxLiveCalls?: number | undefined;
  /** How long a request from after the cut waits for the calls before it, in milliseconds. */
  readonly holdMs?: number | undefined;
  /** Told once, of the first request that has no answer; every later one is refused with the same error. */
  readonly onStopped?: ((error: RootstepError) => void) | undefined;
  /** Records the rerun as a tape of its own. */
  readonly out?: string | undefined;
  /** Of rootstep. */
  readonly version: string;
  readonly now: () => Date;
  readonly secrets?: readonly string[] | undefined;
}

export interface ReplayingFetch
  extends FetchFront,
    Pick<ReplayHandler, "levels" | "actions" | "liveCalls" | "unplayed" | "stopped"> {
  /**
   * Ends the rerun and says how it went; `identityFaults` reads that.
   * @throws RootstepError FILE_UNREADABLE where the rerun's own tape could not be written
   */
  finish(outcome?: RunOutcome): ReplayReport;
}

/** A tape is replayed once per rerun, and there are many. */
const opened = new WeakMap<TapeFolder, TapeRecordings>();

/**
 * A `fetch` that answers from a tape of either front: the tape before the cut, the action at it, `live` after it. Before
 * the cut nothing is ever live; the first request without an answer stops the replay, and the client gets the difference
 * as an error that no library retries.
 *
 * @throws RootstepError USAGE where there is no such call to cut at, or `out` holds a tape
 */
export function replayingFetch(options: ReplayingFetchOptions): ReplayingFetch {
  const { tape, cut } = options;
  const recordings = opened.get(tape) ?? recordingsOf(tape);
  opened.set(tape, recordings);
  refuseCut(cut, recordings.calls.length);
  const upstream = options.live === undefined || cut === undefined ? undefined : fetchUpstream(options.live);
  const secrets = secretsSeen(options.secrets ?? []);
  const { redact } = secrets;
  const about = { ...options, run: tape.header.run, upstream: upstream?.shown ?? tape.header.upstream, command: [] };
  const writer = options.out === undefined ? undefined : createTapeWriter(options.out, tapeHeader(about));
  let broken: RootstepError | undefined;
  const log = watched(createCallLog({ writer, redact, now: () => performance.now() }), (error) => {
    broken ??= asRootstepError(error);
    front.close(broken);
  });
  const { masks, idPatterns, similarityFloor, maxLiveCalls, holdMs, onStopped } = options;
  const matching = { masks, idPatterns, similarityFloor, maxLiveCalls, holdMs, onStopped };
  const replay = replayHandler({ ...matching, recordings, redact, log, cut, upstream });
  const front = openFront(upstream, secrets, replay.answer);
  let report: ReplayReport | undefined;

  return {
    fetch: front.fetch,
    forAgent: front.forAgent,
    levels: replay.levels,
    get actions() {
      return replay.actions;
    },
    get liveCalls() {
      return replay.liveCalls;
    },
    get unplayed() {
      return replay.unplayed;
    },
    get stopped() {
      return replay.stopped;
    },
    finish(outcome = {}) {
      if (report !== undefined) return report;
      report = replayReport(replay, recordings, tape, asProgram(outcome), redact); // before calls under way give their recordings back
      front.close(isOver("the replay is finished"));
      try {
        if (broken !== undefined) throw broken;
        if (writer !== undefined) endTape(writer, asProgram(outcome), redact);
      } finally {
        writer?.close();
      }
      return report;
    },
  };
}
