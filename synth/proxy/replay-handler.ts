import { RootstepError } from "../../src/errors.ts";
import type { Asked, MatchLevel, MatchOptions } from "../tape/matcher.ts";
import { createSharedPrefix, type SharedPrefix } from "../tape/prefix.ts";
import type { Redactor } from "../tape/redact.ts";
import { createReplay } from "../tape/replay.ts";
import { substitute } from "./action.ts";
import type { AnswerPieces, AnswerPort } from "./answer-port.ts";
import { askedBy } from "./asked.ts";
import type { CallLog, OpenCall } from "./call-log.ts";
import type { ProxyCut } from "./cut.ts";
import { httpPort } from "./http-port.ts";
import { type LiveServer, passThrough } from "./live.ts";
import type { Handler, ProxyRequest } from "./request.ts";
import { rewriteChunks } from "./rewrite-chunks.ts";
import type { ProxyRecording, TapeRecordings } from "./tape-recordings.ts";
import { createTurns, type FromTape } from "./turns.ts";

/** Answers of a lane that a retry can still mean. */
const REMEMBERED = 256;

export interface ReplayHandlerOptions extends MatchOptions {
  readonly recordings: TapeRecordings;
  readonly redact: Redactor;
  readonly log: CallLog;
  /** Absent: the whole tape is replayed and nothing is ever live. */
  readonly cut?: ProxyCut | undefined;
  /** Answers after the cut. */
  readonly upstream?: LiveServer | undefined;
  /** Requests let through to the upstream at most, retries counted. */
  readonly maxLiveCalls?: number | undefined;
  readonly holdMs?: number | undefined;
  /** Shared with the replay of the tape's tool traffic; `onStopped` is then its affair. */
  readonly shared?: SharedPrefix | undefined;
  /** Told once, of the first request that has no answer; every later one is refused with the same error. */
  readonly onStopped?: ((error: RootstepError) => void) | undefined;
}

export interface ReplayHandler {
  /** For the proxy. */
  readonly handle: Handler;
  /** For any front. */
  answer(request: ProxyRequest, port: AnswerPort): void;
  readonly levels: Readonly<Record<MatchLevel, number>>;
  /** Calls answered with the action: 0 or 1. */
  readonly actions: number;
  readonly liveCalls: number;
  /** Recorded calls before the cut that nobody asked for. */
  readonly unplayed: number;
  /** The first divergence, or the budget reached. */
  readonly stopped: RootstepError | undefined;
}

/** The handler of a replay: the tape before the cut, the action at it, the upstream after it; an error for anything else. */
export function replayHandler(options: ReplayHandlerOptions): ReplayHandler {
  const { recordings, redact, log, cut, upstream, maxLiveCalls = Number.POSITIVE_INFINITY } = options;
  const shared = options.shared ?? createSharedPrefix(options.onStopped);
  const replay = createReplay(recordings.calls, {
    shared,
    masks: options.masks,
    idPatterns: options.idPatterns,
    similarityFloor: options.similarityFloor,
    cut: cut === undefined ? undefined : { at: cut.at, action: cut.action !== undefined, prefix: cut.prefix },
  });
  /** The last answers of each lane, by the request's bytes. */
  const given = new Map<string, RecentMap<FromTape<ProxyRecording>>>();
  let liveCalls = 0;
  let actions = 0;

  const take = createTurns({
    replay,
    shared,
    holdMs: options.holdMs,
    explained: (error, asked) => explained(error, asked, recordings),
  });

  const serve = (request: ProxyRequest, port: AnswerPort): void => {
    if (request.endpoint === "models") {
      answerModels(request, port);
      return;
    }
    const asked = askedBy(request, redact);
    // What a retry marked as such means is the last answer to that body of its lane.
    const meant = request.retry > 0 ? given.get(asked.lane)?.get(asked.raw) : undefined;
    const tape = (decision: FromTape<ProxyRecording>): void => answer(decision, asked, request, port);
    take({ asked, port, tape, live: () => answerLive(request, port) }, meant);
  };

  const answer = (decision: FromTape<ProxyRecording>, asked: Asked, request: ProxyRequest, port: AnswerPort): void => {
    const { recording, level } = decision;
    const ofLane = given.get(asked.lane) ?? recentMap(REMEMBERED);
    given.set(asked.lane, ofLane);
    ofLane.set(asked.raw, decision);
    const call = log.begin(request);
    port.onceClosed((hadAll) => {
      // Dropped by a client that recorded the whole answer: it will ask again.
      if (hadAll || recording.call.response.outcome !== "complete" || shared.stopped !== undefined) return;
      if (!ofLane.delete(asked.raw)) return;
      replay.giveBack(recording, level);
      if (decision.kind === "action") actions--;
    });
    if (decision.kind === "action" && cut?.action !== undefined) {
      const { contentType, chunks } = substitute(cut.action, recording, request.body);
      actions++;
      const headers = { ...recording.call.response.headers, "content-type": contentType };
      send(call, { outcome: "complete", status: 200, headers, chunks, from: "action" }, port);
    } else {
      const { outcome, status, headers } = recording.call.response;
      const rewrite = replay.rewriter();
      const chunks = rewrite === undefined ? recording.chunks() : rewriteChunks(recording.chunks(), rewrite);
      send(call, { outcome, status, headers, chunks, from: "tape" }, port);
    }
  };

  const send = (
    call: OpenCall,
    pieces: AnswerPieces & { readonly from: "tape" | "action" },
    port: AnswerPort,
  ): void => {
    log.end(call, pieces);
    port.replay(pieces);
  };

  const answerLive = (request: ProxyRequest, port: AnswerPort): void => {
    if (upstream === undefined) {
      const what = "the run went past its cut and there is no upstream";
      throw new RootstepError("USAGE", { what, hint: "Give --upstream (in process: `live`)." });
    }
    if (liveCalls >= maxLiveCalls) {
      const what = `${maxLiveCalls} live calls are made, the program asks for more`;
      throw new RootstepError("BUDGET_REACHED", { what, where: `lane ${request.lane.name}` });
    }
    liveCalls++;
    passThrough(upstream, log, log.begin(request), port);
  };

  const answerModels = (request: ProxyRequest, port: AnswerPort): void => {
    const recording = recordings.models.get(request.query) ?? [...recordings.models.values()].at(-1);
    if (recording === undefined) {
      port.refuse(404, "NOT_ON_TAPE", "the tape holds no answer to GET models");
      return;
    }
    const { outcome, status, headers } = recording.call.response;
    send(log.begin(request), { outcome, status, headers, chunks: recording.chunks(), from: "tape" }, port);
  };

  return {
    handle: (request, response) => serve(request, httpPort(response)),
    answer: serve,
    levels: replay.levels,
    get actions() {
      return actions;
    },
    get liveCalls() {
      return liveCalls;
    },
    get unplayed() {
      return replay.unplayed;
    },
    get stopped() {
      return shared.stopped;
    },
  };
}

interface RecentMap<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): boolean;
}

/** A map that keeps the last `size` to twice `size` entries, in two generations. */
function recentMap<V>(size: number): RecentMap<V> {
  let [young, old] = [new Map<string, V>(), new Map<string, V>()];
  return {
    get: (key) => young.get(key) ?? old.get(key),
    set(key, value) {
      young.set(key, value);
      if (young.size >= size) [young, old] = [new Map(), young];
    },
    delete(key) {
      const wasOld = old.delete(key);
      return young.delete(key) || wasOld;
    },
  };
}

/** Where the recording of just this request ended in a 429 or 5xx for good, that is what the reader has to know. */
function explained(error: RootstepError, asked: Asked, { failed }: TapeRecordings): RootstepError {
  if (error.code !== "REPLAY_DIVERGED" && error.code !== "TAPE_EXHAUSTED") return error;
  const call = failed.find(({ lane, request }) => lane === asked.lane && request.key === asked.key());
  if (call === undefined) return error;
  return new RootstepError(error.code, {
    what: `this request ended in HTTP ${call.response.status} when it was recorded, and failures are never replayed; ${error.what}`,
    where: error.where,
    hint: "Record again when the model server answers.",
  });
}
