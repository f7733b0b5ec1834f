import type { ServerResponse } from "node:http";
import type { StoredCall } from "../tape/folder-schema.ts";
import { keptResponseHeaders } from "../tape/redact.ts";
import type { CallLog, OpenCall } from "./call-log.ts";
import { sendError } from "./error-answer.ts";
import type { Handler } from "./request.ts";
import { type Exchange, isDecoded, type Upstream } from "./upstream.ts";

/** The handler of a recording: every request goes to the upstream, its answer to the client and on the tape. */
export function recordHandler(upstream: Upstream, log: CallLog): Handler {
  return (request, response) => passThrough(upstream, log, log.begin(request), response);
}

/** Asks the upstream and hands its answer on piece by piece, no faster than the client reads. */
export function passThrough(upstream: Upstream, log: CallLog, call: OpenCall, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  let status = 0;
  let headers: Readonly<Record<string, string | readonly string[] | undefined>> = {};
  let over = false;

  const end = (outcome: StoredCall["response"]["outcome"]): void => {
    over = true;
    log.end(call, { outcome, status, headers, chunks, from: "live" });
  };
  const exchange: Exchange = upstream.send(call.request, {
    start(code, received) {
      [status, headers] = [code, received];
      const shown = { ...keptResponseHeaders(received, (text) => text) };
      const encoding = received["content-encoding"];
      if (encoding !== undefined && !isDecoded(encoding)) shown["content-encoding"] = encoding;
      response.writeHead(code, shown);
      // A stream's first event may be long in coming; any other answer's head goes out with its body.
      if (String(received["content-type"]).startsWith("text/event-stream")) response.flushHeaders();
    },
    piece(bytes) {
      chunks.push(bytes);
      if (response.write(bytes)) return true;
      response.once("drain", () => exchange.resume());
      return false;
    },
    end() {
      end("complete");
      response.end();
    },
    fail(error, started) {
      if (!started) {
        status = error.code === "MODEL_TIMEOUT" ? 504 : 502;
        end("unreachable");
        sendError(response, status, error.code, error.message);
        return;
      }
      end("cut");
      response.destroy(); // what the client would have seen without the proxy
    },
  });
  response.once("close", () => {
    if (over) return;
    exchange.abort();
    end("aborted");
  });
}
