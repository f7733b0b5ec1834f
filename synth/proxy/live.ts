import { asRootstepError } from "../../src/errors.ts";
import type { StoredCall } from "../tape/folder-schema.ts";
import { keptResponseHeaders } from "../tape/redact.ts";
import type { AnswerPort } from "./answer-port.ts";
import type { CallLog, Ending, OpenCall } from "./call-log.ts";
import { httpPort } from "./http-port.ts";
import type { Handler } from "./request.ts";
import { type AnswerSink, type Exchange, isDecoded, type Upstream } from "./upstream.ts";

/** Who answers live calls. */
export type LiveServer = Pick<Upstream, "send">;

/** The handler of a recording: every request goes to the upstream, its answer to the client and on the tape. */
export function recordHandler(upstream: LiveServer, log: CallLog): Handler {
  return (request, response) => passThrough(upstream, log, log.begin(request), httpPort(response));
}

/** Asks the upstream and hands its answer on piece by piece, no faster than the client reads. */
export function passThrough(upstream: LiveServer, log: CallLog, call: OpenCall, port: AnswerPort): void {
  relay(
    (sink) => upstream.send(call.request, sink),
    port,
    (ending) => log.end(call, ending),
  );
}

type Headers = Ending["headers"];

/**
 * Hands on an answer as it comes.
 * @param ended told before the client has all of it
 * @param seen changes headers that the client, and the tape, must see otherwise; default: none
 */
export function relay(
  send: (sink: AnswerSink) => Exchange,
  port: AnswerPort,
  ended: (ending: Ending) => void,
  seen: (status: number, headers: Headers) => Headers = (_, headers) => headers,
): void {
  const chunks: Buffer[] = [];
  let status = 0;
  let headers: Headers = {};
  let over = false;

  /** @returns false where it cannot be put on tape: then the client must not have it either */
  const keep = (outcome: StoredCall["response"]["outcome"]): boolean => {
    over = true;
    try {
      ended({ outcome, status, headers, chunks, from: "live" });
      return true;
    } catch (error) {
      port.breakOff(asRootstepError(error));
      return false;
    }
  };
  const exchange: Exchange = send({
    start(code, answered) {
      const received = seen(code, answered);
      [status, headers] = [code, received];
      const shown = { ...keptResponseHeaders(received, (text) => text) };
      const encoding = answered["content-encoding"];
      if (encoding !== undefined && !isDecoded(encoding)) shown["content-encoding"] = encoding;
      port.start(code, shown);
    },
    piece(bytes) {
      chunks.push(bytes);
      if (port.piece(bytes)) return true;
      port.onceDrained(() => exchange.resume());
      return false;
    },
    end() {
      if (keep("complete")) port.end();
    },
    fail(error, started) {
      if (!started) {
        status = error.code.endsWith("_TIMEOUT") ? 504 : 502;
        if (keep("unreachable")) port.unreachable(status, error);
      } else if (keep("cut")) port.breakOff(error);
    },
  });
  port.onceClosed(() => {
    if (over) return;
    exchange.abort();
    keep("aborted");
  });
}
