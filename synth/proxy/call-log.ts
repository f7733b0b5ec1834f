import type { StoredCall } from "../tape/folder-schema.ts";
import { keptRequestHeaders, keptResponseHeaders, type Redactor } from "../tape/redact.ts";
import { requestKey } from "../tape/request-key.ts";
import type { TapeWriter } from "../tape/writer.ts";
import type { ProxyRequest } from "./request.ts";
import { rewriteChunks } from "./rewrite-chunks.ts";

/** How an answer ended, as it is put on tape. */
export interface Ending {
  readonly outcome: StoredCall["response"]["outcome"];
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly chunks: readonly Buffer[];
  readonly from: StoredCall["from"];
}

export interface CallStamp {
  readonly index: number;
  /** Milliseconds after the start. */
  readonly askedAt: number;
}

export interface OpenCall extends CallStamp {
  readonly request: ProxyRequest;
}

/** Numbers the calls of a run as they arrive and, with a writer, puts them on tape as they end. */
export interface CallLog {
  begin(request: ProxyRequest): OpenCall;
  /** Before the client has all of the answer: what it has seen is on tape. */
  end(call: OpenCall, ending: Ending): void;
  /** Without GET models. */
  readonly calls: number;
}

export interface CallLogOptions {
  readonly writer?: TapeWriter | undefined;
  readonly redact: Redactor;
  /** Milliseconds, monotonic; `clock` takes its place where it is shared with the log of tool traffic. */
  readonly now?: (() => number) | undefined;
  readonly clock?: TapeClock | undefined;
  readonly onCall?: ((call: StoredCall) => void) | undefined;
}

/** Numbers what arrives and tells when, from the moment it is made. */
export interface TapeClock {
  stamp(): CallStamp;
  /** Milliseconds since that stamp, rounded as on tape. */
  since(stamp: CallStamp): number;
}

/** @param now milliseconds, monotonic */
export function createTapeClock(now: () => number): TapeClock {
  const start = now();
  let begun = 0;
  return {
    stamp: () => ({ index: begun++, askedAt: round(now() - start) }),
    since: ({ askedAt }) => round(now() - start - askedAt),
  };
}

export function createCallLog(options: CallLogOptions): CallLog {
  const { writer, redact, now = () => performance.now(), clock = createTapeClock(now), onCall } = options;
  let calls = 0;

  return {
    begin(request) {
      if (request.endpoint !== "models") calls++;
      return { request, ...clock.stamp() };
    },
    end(open, ending) {
      const { request, index, askedAt } = open;
      if (writer === undefined) return;
      const body = redactedBody(request.body, redact);
      const chunks = rewriteChunks(ending.chunks, redact);
      const call: StoredCall = {
        type: "call",
        index,
        lane: redact(request.lane.name),
        laneBy: request.lane.by,
        endpoint: request.endpoint,
        retry: request.retry,
        from: ending.from,
        askedAt,
        tookMs: clock.since(open),
        request: {
          ...(request.query === "" ? {} : { query: redact(request.query) }),
          headers: keptRequestHeaders(request.headers, redact),
          body: writer.body(body),
          key: requestKey(request.endpoint, body),
        },
        response: {
          outcome: ending.outcome,
          status: ending.status,
          headers: keptResponseHeaders(ending.headers, redact),
          body: writer.body(Buffer.concat(chunks)),
          ...(chunks.length > 1 ? { chunks: chunks.map(({ length }) => length) } : {}),
        },
      };
      writer.call(call);
      onCall?.(call);
    },
    get calls() {
      return calls;
    },
  };
}

/** The body as a tape holds it; the same bytes where nothing had to go. */
export function redactedBody(body: Buffer, redact: Redactor): Buffer {
  const text = body.toString("utf8");
  const clean = redact(text);
  return clean === text ? body : Buffer.from(clean, "utf8");
}

const round = (ms: number): number => Math.round(ms * 1000) / 1000;
