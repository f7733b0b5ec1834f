import type { IncomingHttpHeaders } from "node:http";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { Agent, type Dispatcher } from "undici";
import { RootstepError } from "../../src/errors.ts";
import type { Secret } from "../../src/models/key.ts";
import { publicUrl } from "../../src/models/server-url.ts";
import type { ProxyRequest } from "./request.ts";

/** Time limits of one call to the upstream, in milliseconds. */
export interface UpstreamLimits {
  readonly connectMs: number;
  /** To the first byte of the answer. */
  readonly firstByteMs: number;
  /** Between two pieces of the body. */
  readonly idleMs: number;
  readonly totalMs: number;
}

export const DEFAULT_LIMITS: UpstreamLimits = {
  connectMs: 10_000,
  firstByteMs: 300_000,
  idleMs: 120_000,
  totalMs: 900_000,
};

/** No completion is that large; a server that sends more is not one. In bytes. */
const LARGEST_ANSWER = 128 * 1024 * 1024;

/** A request to a server, below its base URL. */
export interface OutgoingRequest {
  readonly method: string;
  readonly path: string;
  /** With its `?`, or empty. */
  readonly query: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Null: none. */
  readonly body: Buffer | null;
}

export interface HttpOriginOptions {
  /** The one address that is asked: nothing outside it, and no redirect away from it. */
  readonly base: URL;
  readonly limits?: Partial<UpstreamLimits> | undefined;
  /** True where redirects are handed on: the sink then answers for where they lead. */
  readonly handsOnRedirects?: boolean | undefined;
}

/** One HTTP server behind the proxy. */
export interface HttpOrigin {
  readonly base: URL;
  /** Its base URL without anything secret. */
  readonly shown: string;
  send(request: OutgoingRequest, sink: AnswerSink): Exchange;
  close(): Promise<void>;
}

export interface UpstreamOptions {
  readonly base: URL;
  readonly key?: Secret | undefined;
  readonly limits?: Partial<UpstreamLimits> | undefined;
}

/** Where the pieces of an answer go. */
export interface AnswerSink {
  start(status: number, headers: IncomingHttpHeaders): void;
  /** @returns false to be sent no more until `resume` */
  piece(bytes: Buffer): boolean;
  end(): void;
  /** Instead of `end`: nothing came (`started` false), or the answer broke off. */
  fail(error: RootstepError, started: boolean): void;
}

export interface Exchange {
  resume(): void;
  abort(): void;
}

export interface Upstream {
  /** Its base URL without anything secret. */
  readonly shown: string;
  send(request: ProxyRequest, sink: AnswerSink): Exchange;
  close(): Promise<void>;
}

/** Headers of one connection, or that would tell the upstream more than the program's request. */
const NOT_FORWARDED =
  /^(?:host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|content-encoding|accept-encoding|authorization|api-key|x-api-key|cookie|expect)$/u;

/** An OpenAI-compatible server behind the proxy. */
export function createUpstream({ base, key, limits }: UpstreamOptions): Upstream {
  const origin = createHttpOrigin({ base, limits });
  return {
    shown: origin.shown,
    send({ endpoint, path, query, headers, body }, sink) {
      const isGet = endpoint === "models";
      const forwarded = forwardedHeaders(headers, NOT_FORWARDED);
      if (key !== undefined) forwarded.authorization = `Bearer ${key.reveal()}`;
      const request = { method: isGet ? "GET" : "POST", path, query, headers: forwarded, body: isGet ? null : body };
      return origin.send(request, sink);
    },
    close: () => origin.close(),
  };
}

/** A server whose pieces are handed on as they come, under time and size limits. */
export function createHttpOrigin({ base, limits: given, handsOnRedirects = false }: HttpOriginOptions): HttpOrigin {
  const limits = { ...DEFAULT_LIMITS, ...given };
  const agent = new Agent({
    connect: { timeout: limits.connectMs },
    headersTimeout: limits.firstByteMs,
    bodyTimeout: limits.idleMs,
  });
  const shown = publicUrl(base);
  const basePath = base.pathname.replace(/\/+$/u, "");

  return {
    base,
    shown,
    send(request, sink) {
      const path = `${`${basePath}${request.path}` || "/"}${joinedQuery(base.search, request.query)}`;
      const handler = answerHandler(sink, `${shown}${request.path}`, limits.totalMs, handsOnRedirects);
      const { method, headers, body } = request;
      agent.dispatch({ origin: base.origin, path, method, headers, body }, handler);
      return handler;
    },
    close: () => agent.destroy(),
  };
}

function joinedQuery(base: string, asked: string): string {
  if (base === "") return asked;
  return asked === "" ? base : `${base}&${asked.slice(1)}`;
}

/** The headers of a request that go on to the server. */
export function forwardedHeaders(headers: IncomingHttpHeaders, left: RegExp): Record<string, string | string[]> {
  // Compressed pieces could not be replayed chunk for chunk to a client that asks for them otherwise.
  const found: Record<string, string | string[]> = { "accept-encoding": "identity" };
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !left.test(name)) found[name] = value;
  }
  return found;
}

function answerHandler(
  sink: AnswerSink,
  where: string,
  totalMs: number,
  handsOnRedirects: boolean,
): Dispatcher.DispatchHandler & Exchange {
  let controller: Dispatcher.DispatchController | undefined;
  let decoder: Decoder | undefined;
  let started = false;
  let over = false;
  let size = 0;

  const finish = (error?: RootstepError): void => {
    if (over) return;
    over = true;
    clearTimeout(total);
    if (error === undefined) sink.end();
    else sink.fail(error, started);
  };
  const stop = (error: RootstepError): void => {
    finish(error);
    controller?.abort(error);
  };
  const total = setTimeout(() => {
    stop(new RootstepError("MODEL_TIMEOUT", { what: `the upstream took more than ${totalMs} ms`, where }));
  }, totalMs);
  const piece = (bytes: Buffer): void => {
    if (over) return;
    size += bytes.length;
    if (size > LARGEST_ANSWER) {
      stop(new RootstepError("MODEL_BAD_BODY", { what: `the answer is larger than ${LARGEST_ANSWER} bytes`, where }));
    } else if (!sink.piece(bytes)) {
      controller?.pause();
      decoder?.pause();
    }
  };

  return {
    onRequestStart(control) {
      controller = control;
      if (over) control.abort(new Error("the client left"));
    },
    onResponseStart(_control, status, headers) {
      if (status < 200) return; // 1xx: the answer is still to come
      if (!handsOnRedirects && status >= 300 && status < 400) {
        // Followed, it would lead prompt and key to an address nobody named; handed on, past the tape.
        stop(new RootstepError("MODEL_BAD_BODY", { what: `the upstream redirects (HTTP ${status})`, where }));
        return;
      }
      started = true;
      decoder = decoderFor(String(headers["content-encoding"] ?? "identity"));
      decoder?.on("data", piece);
      decoder?.on("end", () => finish());
      decoder?.on("error", (cause) =>
        stop(new RootstepError("MODEL_BAD_BODY", { what: "the answer's compression is damaged", where, cause })),
      );
      sink.start(status, headers);
    },
    onResponseData(control, bytes) {
      if (decoder === undefined) return piece(bytes);
      if (!decoder.write(bytes)) {
        control.pause();
        decoder.once("drain", () => control.resume());
      }
    },
    onResponseEnd() {
      if (decoder === undefined) finish();
      else decoder.end();
    },
    onResponseError(_control, error) {
      finish(upstreamError(error, where, started));
    },
    resume() {
      controller?.resume();
      decoder?.resume();
    },
    abort() {
      over = true;
      clearTimeout(total);
      controller?.abort(new Error("the client left"));
      decoder?.destroy();
    },
  };
}

type Decoder = ReturnType<typeof createGunzip> | ReturnType<typeof createBrotliDecompress>;

/** Undefined for identity and for encodings unknown here, which are handed on as they are. */
function decoderFor(encoding: string): Decoder | undefined {
  switch (encoding.trim().toLowerCase()) {
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "deflate":
      return createInflate();
    case "br":
      return createBrotliDecompress();
    default:
      return undefined;
  }
}

/** True where the proxy takes that compression off. */
export function isDecoded(encoding: string | undefined): boolean {
  return encoding !== undefined && /^\s*(?:x-)?(?:gzip|deflate|br|identity)\s*$/iu.test(encoding);
}

function upstreamError(cause: Error, where: string, started: boolean): RootstepError {
  const code = "code" in cause ? String(cause.code) : "";
  if (/TIMEOUT/u.test(code)) {
    return new RootstepError("MODEL_TIMEOUT", { what: `the upstream gave no answer in time (${code})`, where, cause });
  }
  if (started) return new RootstepError("MODEL_STREAM_CUT", { what: "the upstream's answer broke off", where, cause });
  return new RootstepError("MODEL_UNREACHABLE", { what: `the upstream cannot be reached (${code})`, where, cause });
}
