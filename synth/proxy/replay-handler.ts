import type { ServerResponse } from "node:http";
import { asRootstepError, RootstepError } from "../../src/errors.ts";
import type { Asked, MatchLevel, MatchOptions } from "../tape/matcher.ts";
import type { Redactor } from "../tape/redact.ts";
import { createReplay, type Decision } from "../tape/replay.ts";
import { type Action, substitute } from "./action.ts";
import { askedBy } from "./asked.ts";
import type { CallLog, OpenCall } from "./call-log.ts";
import { sendError } from "./error-answer.ts";
import { passThrough } from "./live.ts";
import type { Handler, ProxyRequest } from "./request.ts";
import { rewriteChunks } from "./rewrite-chunks.ts";
import type { ProxyRecording, TapeRecordings } from "./tape-recordings.ts";
import type { Upstream } from "./upstream.ts";
import { type AnswerPieces, writeAnswer } from "./write-answer.ts";

/** How long a request from after the cut waits for the calls before it, in milliseconds. */
const HOLD_MS = 30_000;

/** Answers of a lane that a retry can still mean. */
const REMEMBERED = 256;

export interface ReplayHandlerOptions extends MatchOptions {
  readonly recordings: TapeRecordings;
  readonly redact: Redactor;
  readonly log: CallLog;
  /** Absent: the whole tape is replayed and nothing is ever live. */
  readonly cut?: { readonly at: number; readonly action?: Action | undefined } | undefined;
  /** Answers after the cut. */
  readonly upstream?: Upstream | undefined;
  /** Requests let through to the upstream at most, retries counted. */
  readonly maxLiveCalls?: number | undefined;
  readonly holdMs?: number | undefined;
  /** Told once, of the first request that has no answer; every later one is refused with the same error. */
  readonly onStopped?: ((error: RootstepError) => void) | undefined;
}

export interface ReplayHandler {
  readonly handle: Handler;
  readonly levels: Readonly<Record<MatchLevel, number>>;
  /** Calls answered with the action: 0 or 1. */
  readonly actions: number;
  readonly liveCalls: number;
  /** Recorded calls before the cut that nobody asked for. */
  readonly unplayed: number;
  /** The first divergence, or the budget reached. */
  readonly stopped: RootstepError | undefined;
}

type FromTape = Extract<Decision<ProxyRecording>, { recording: ProxyRecording }>;

/** The handler of a replay: the tape before the cut, the action at it, the upstream after it; an error for anything else. */
export function replayHandler(options: ReplayHandlerOptions): ReplayHandler {
  const { recordings, redact, log, cut, upstream, maxLiveCalls = Number.POSITIVE_INFINITY } = options;
  const replay = createReplay(recordings.calls, {
    masks: options.masks,
    similarityFloor: options.similarityFloor,
    cut: cut === undefined ? undefined : { at: cut.at, action: cut.action !== undefined },
  });
  /** The last answers of each lane, by the request's bytes. */
  const given = new Map<string, RecentMap<FromTape>>();
  let waiting: (() => void)[] = [];
  let liveCalls = 0;
  let actions = 0;
  let stopped: RootstepError | undefined;

  const stop = (error: RootstepError, response: ServerResponse): void => {
    if (stopped === undefined) {
      stopped = error;
      options.onStopped?.(error);
    }
    for (const proceed of waiting.splice(0)) proceed();
    sendError(response, 400, stopped.code, stopped.message);
  };

  const handle = (request: ProxyRequest, response: ServerResponse): void => {
    if (request.endpoint === "models") {
      answerModels(request, response);
      return;
    }
    const asked = askedBy(request, redact);
    // What a retry marked as such means is the last answer to that body of its lane.
    attempt(request.retry > 0 ? given.get(asked.lane)?.get(asked.raw) : undefined, asked, request, response);
  };

  /** Answers by that decision, or the one the tape makes. */
  const attempt = (
    decision: FromTape | undefined,
    asked: Asked,
    request: ProxyRequest,
    response: ServerResponse,
  ): void => {
    if (stopped !== undefined) {
      sendError(response, 400, stopped.code, stopped.message);
      return;
    }
    try {
      carryOut(decision ?? replay.decide(asked), asked, request, response);
    } catch (thrown) {
      stop(explained(asRootstepError(thrown), asked, recordings), response);
    }
  };

  const carryOut = (
    decision: Decision<ProxyRecording>,
    asked: Asked,
    request: ProxyRequest,
    response: ServerResponse,
  ): void => {
    switch (decision.kind) {
      case "tape":
      case "action":
        answer(decision, asked, request, response);
        break;
      case "live":
        answerLive(request, response);
        break;
      case "held":
        hold(decision.error, asked, request, response);
    }
  };

  const answer = (decision: FromTape, asked: Asked, request: ProxyRequest, response: ServerResponse): void => {
    const { recording, level } = decision;
    const ofLane = given.get(asked.lane) ?? recentMap(REMEMBERED);
    given.set(asked.lane, ofLane);
    ofLane.set(asked.raw, decision);
    const call = log.begin(request);
    response.once("close", () => {
      // Dropped by a client that recorded the whole answer: it will ask again.
      if (response.writableFinished || recording.call.response.outcome !== "complete" || stopped !== undefined) return;
      if (!ofLane.delete(asked.raw)) return;
      replay.giveBack(recording, level);
      if (decision.kind === "action") actions--;
    });
    if (decision.kind === "action" && cut?.action !== undefined) {
      const { contentType, chunks } = substitute(cut.action, recording, request.body);
      actions++;
      const headers = { ...recording.call.response.headers, "content-type": contentType };
      send(call, { outcome: "complete", status: 200, headers, chunks, from: "action" }, response);
    } else {
      const { outcome, status, headers } = recording.call.response;
      const rewrite = replay.rewriter();
      const chunks = rewrite === undefined ? recording.chunks() : rewriteChunks(recording.chunks(), rewrite);
      send(call, { outcome, status, headers, chunks, from: "tape" }, response);
    }
    if (replay.prefixDone) for (const proceed of waiting.splice(0)) proceed();
  };

  const send = (
    call: OpenCall,
    pieces: AnswerPieces & { readonly from: "tape" | "action" },
    response: ServerResponse,
  ): void => {
    log.end(call, pieces);
    writeAnswer(pieces, response);
  };

  const answerLive = (request: ProxyRequest, response: ServerResponse): void => {
    if (upstream === undefined) {
      const what = "the run went past its cut and there is no upstream";
      stop(new RootstepError("USAGE", { what, hint: "Give --upstream." }), response);
      return;
    }
    if (liveCalls >= maxLiveCalls) {
      const what = `${maxLiveCalls} live calls are made, the program asks for more`;
      stop(new RootstepError("BUDGET_REACHED", { what, where: `lane ${request.lane.name}` }), response);
      return;
    }
    liveCalls++;
    passThrough(upstream, log, log.begin(request), response);
  };

  const hold = (error: RootstepError, asked: Asked, request: ProxyRequest, response: ServerResponse): void => {
    const proceed = (): void => {
      clearTimeout(limit);
      if (!response.destroyed) attempt(undefined, asked, request, response);
    };
    const limit = setTimeout(() => {
      waiting = waiting.filter((other) => other !== proceed);
      if (!response.destroyed) stop(explained(error, asked, recordings), response);
    }, options.holdMs ?? HOLD_MS);
    waiting.push(proceed);
  };

  const answerModels = (request: ProxyRequest, response: ServerResponse): void => {
    const recording = recordings.models.get(request.query) ?? [...recordings.models.values()].at(-1);
    if (recording === undefined) {
      sendError(response, 404, "NOT_ON_TAPE", "the tape holds no answer to GET models");
      return;
    }
    const { outcome, status, headers } = recording.call.response;
    send(log.begin(request), { outcome, status, headers, chunks: recording.chunks(), from: "tape" }, response);
  };

  return {
    handle,
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
      return stopped;
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
