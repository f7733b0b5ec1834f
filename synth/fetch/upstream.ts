import { asRootstepError, RootstepError } from "../../src/errors.ts";
import { publicUrl } from "../../src/models/server-url.ts";
import type { LiveServer } from "../proxy/live.ts";
import type { ProxyRequest } from "../proxy/request.ts";
import type { AnswerSink, Exchange } from "../proxy/upstream.ts";
import type { Fetch } from "./request.ts";

/** Where live calls of a wrapped `fetch` go. */
export interface LiveFetch {
  /** The one base URL that may be asked, as the client library has it: `https://api.openai.com/v1`. */
  readonly upstream: URL;
  /** Gets method, headers, body and signal; what else a client gives to `fetch` (a dispatcher) has to be in it already. */
  readonly fetch: Fetch;
}

export interface FetchUpstream extends LiveServer {
  /** Its base URL without anything secret. */
  readonly shown: string;
  /** True for URLs below the base. */
  covers(url: URL): boolean;
}

/** The model server behind the `fetch` that is wrapped. Time limits are the client library's: it aborts. */
export function fetchUpstream({ upstream, fetch }: LiveFetch): FetchUpstream {
  const base = `${upstream.origin}${upstream.pathname.replace(/\/+$/u, "")}`;
  return {
    shown: publicUrl(upstream),
    covers: ({ origin, pathname }) => `${origin}${pathname}`.startsWith(`${base}/`),
    send(request, sink) {
      const leaving = new AbortController();
      const flow = pausable();
      const asking = { where: `${publicUrl(upstream)}${request.path}`, url: `${base}${request.path}${request.query}` };
      void carry(asking, request, fetch, leaving.signal, flow, sink);
      const exchange: Exchange = { resume: flow.resume, abort: () => leaving.abort() };
      return exchange;
    },
  };
}

async function carry(
  { url, where }: { readonly url: string; readonly where: string },
  request: ProxyRequest,
  fetch: Fetch,
  signal: AbortSignal,
  flow: Pausable,
  sink: AnswerSink,
): Promise<void> {
  let started = false;
  try {
    // Redirected, prompt and key would go to an address nobody named.
    const response = await fetch(url, { ...sent(request), redirect: "manual", signal });
    if (response.status >= 300 && response.status < 400) {
      throw new RootstepError("MODEL_BAD_BODY", { what: `the upstream redirects (HTTP ${response.status})`, where });
    }
    started = true;
    sink.start(response.status, Object.fromEntries(response.headers));
    for await (const piece of response.body ?? []) {
      const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
      if (!sink.piece(bytes)) await flow.paused(signal);
      signal.throwIfAborted();
    }
  } catch (cause) {
    if (!signal.aborted) sink.fail(failure(cause, where, started), started);
    return;
  }
  sink.end();
}

/** Everything as the client library sent it: it is its own key. Pieces must come uncompressed to be replayed as they came. */
function sent({ endpoint, headers, body }: ProxyRequest): RequestInit {
  const { "content-length": _, ...kept } = headers;
  const found = new Headers({ "accept-encoding": "identity" });
  for (const [name, value] of Object.entries(kept)) {
    if (name !== "accept-encoding" && value !== undefined) found.set(name, String(value));
  }
  return { method: endpoint === "models" ? "GET" : "POST", headers: found, body: endpoint === "models" ? null : body };
}

function failure(cause: unknown, where: string, started: boolean): RootstepError {
  if (cause instanceof RootstepError) return cause;
  const { message } = asRootstepError(cause);
  return started
    ? new RootstepError("MODEL_STREAM_CUT", { what: `the upstream's answer broke off: ${message}`, where, cause })
    : new RootstepError("MODEL_UNREACHABLE", { what: `the upstream cannot be reached: ${message}`, where, cause });
}

interface Pausable {
  /** Until `resume`, or the signal. */
  paused(signal: AbortSignal): Promise<void>;
  resume(): void;
}

function pausable(): Pausable {
  let proceed = (): void => {};
  return {
    paused: (signal) =>
      new Promise((resolve) => {
        proceed = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      }),
    resume: () => proceed(),
  };
}
