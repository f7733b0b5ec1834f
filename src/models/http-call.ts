import { Agent, type Dispatcher } from "undici";
import { RootstepError } from "../errors.ts";
import { interruption, onInterruption, throwIfInterrupted } from "../interruption.ts";
import { startCallTimer } from "./call-timer.ts";
import { type Clock, systemClock } from "./clock.ts";
import { type Exchange, type ExchangeRequest, startExchange } from "./http-exchange.ts";
import type { Secret } from "./key.ts";
import { looksLikeHtml, networkError, quote, retryAfterMs, statusError } from "./server-failures.ts";
import { publicUrl } from "./server-url.ts";

/** Time limits of one call, in milliseconds. */
export interface Timeouts {
  /** Until the connection stands (TLS included). */
  readonly connectMs: number;
  /** From the request to the first byte of the answer's body. A server that does not stream needs its whole time here. */
  readonly firstByteMs: number;
  /** Between two pieces of the body. */
  readonly idleMs: number;
  /** For the whole call. */
  readonly totalMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = {
  connectMs: 10_000,
  firstByteMs: 300_000,
  idleMs: 60_000,
  totalMs: 900_000,
};

/** No completion is that large; a server that sends more is not one. In bytes. */
const LARGEST_BODY = 32 * 1024 * 1024;
/** As much of an error's body as is read. In bytes. */
const LARGEST_ERROR_BODY = 64 * 1024;
/** How long the end of a body is awaited after the answer is complete, so that the connection can be used again. */
const LINGER_MS = 200;

export interface HttpCallOptions {
  /** Where the call goes, until `send` names the URL. */
  readonly where: string;
  readonly secrets: readonly Secret[];
  readonly timeouts: Timeouts;
  readonly dispatcher: Dispatcher;
  readonly signal?: AbortSignal | undefined;
  readonly clock?: Clock | undefined;
  /** In bytes; default 32 MiB. */
  readonly largestBody?: number | undefined;
}

/** A successful answer whose body is still to be read, once. */
export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string;
  /** The body's pieces, under the time and size limits. @throws RootstepError MODEL_BAD_BODY where it is empty or too large */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** One model call: its time limits, its interruption, and what its failures mean. */
export interface HttpCall {
  /** @throws RootstepError for every status outside 200–299, and for redirects */
  send(url: URL, request: ExchangeRequest): Promise<HttpAnswer>;
  /** The catalogue error for anything thrown while the call ran. */
  explain(error: unknown): RootstepError;
  /** Ends the timers and lets go of the connection. */
  close(): Promise<void>;
  /** The public URL last asked. */
  readonly where: string;
}

/** An agent that has only the connection's limit: the others are the call's own, and can say which one ran out. */
export function agentFor(timeouts: Timeouts): Agent {
  return new Agent({ connect: { timeout: timeouts.connectMs }, headersTimeout: 0, bodyTimeout: 0 });
}

export function openHttpCall(options: HttpCallOptions): HttpCall {
  const { secrets, timeouts, signal, clock = systemClock, largestBody = LARGEST_BODY } = options;
  throwIfInterrupted(signal, options.where);
  let where = options.where;
  let answered = false;
  let exchange: Exchange | undefined;
  /** What ended the call before its answer did: a time limit. */
  let stopped: RootstepError | undefined;

  const stop = (reason: RootstepError): void => {
    stopped ??= reason;
    exchange?.abort(stopped);
  };
  const limits = startCallTimer({ name: "totalMs", ms: timeouts.totalMs }, ({ name, ms }) => {
    const what = `The model server exceeded the time limit ${name} (${ms} ms)`;
    stop(new RootstepError("MODEL_TIMEOUT", { what, where }));
  });
  const firstByte = { name: "firstByteMs", ms: timeouts.firstByteMs };
  const idle = { name: "idleMs", ms: timeouts.idleMs };
  const stopListening = onInterruption(signal, () => {
    if (signal !== undefined) stop(interruption(signal, where));
  });

  /** The pieces of a body. No generator: it would wait twice for each of them. */
  function read(from: Exchange, status: number, most: number): AsyncIterable<Uint8Array> {
    let size = 0;
    const next = async (): Promise<IteratorResult<Uint8Array, undefined>> => {
      const value = await from.next();
      if (value === undefined) {
        limits.rest();
        if (size > 0) return { done: true, value };
        const what = `The model server answered HTTP ${status} with an empty body`;
        throw new RootstepError("MODEL_BAD_BODY", { what, where });
      }
      if (from.over) limits.rest();
      else limits.phase(idle);
      size += value.byteLength;
      if (size <= most) return { done: false, value };
      const what = `The model server's answer is larger than ${most} bytes`;
      throw new RootstepError("MODEL_BAD_BODY", { what, where, retryable: false });
    };
    return { [Symbol.asyncIterator]: () => ({ next }) };
  }

  /** As much of the error's body as comes; the status alone says enough if none does. */
  async function errorBody(from: Exchange, status: number): Promise<string> {
    let text = "";
    const decoder = new TextDecoder();
    try {
      for await (const chunk of read(from, status, LARGEST_ERROR_BODY)) text += decoder.decode(chunk, { stream: true });
    } catch (error) {
      if (signal?.aborted) throw error;
    }
    return text;
  }

  return {
    get where() {
      return where;
    },
    async send(url, request) {
      where = publicUrl(url);
      answered = false;
      limits.phase(firstByte);
      // Follows no redirect, which would carry prompt and key to an address nobody named, and unpacks nothing, so nothing
      // packed is asked for.
      const sent = startExchange(options.dispatcher, url, {
        ...request,
        headers: { ...request.headers, "accept-encoding": "identity" },
      });
      exchange = sent;
      if (stopped !== undefined) sent.abort(stopped);
      const { status, headers } = await sent.head;
      answered = true;
      const header = (name: string): string | null => {
        const value = headers[name];
        return (Array.isArray(value) ? value[0] : value) ?? null;
      };
      if (status >= 300 && status < 400) {
        const target = header("location") ?? "";
        const shown = URL.canParse(target, url.href) ? publicUrl(new URL(target, url)) : "an invalid address";
        throw new RootstepError("MODEL_BAD_BODY", {
          what: `The model server redirects (HTTP ${status}) to ${quote(shown, secrets)}`,
          where,
          hint: "Set the base URL to the address where the API itself answers.",
          retryable: false,
        });
      }
      if (status < 200 || status >= 300) {
        const failed = { status, body: await errorBody(sent, status), retryAfterMs: retryAfterMs(header, clock.now()) };
        throw statusError(failed, { where, secrets });
      }
      const packing = header("content-encoding") ?? "identity";
      if (packing !== "identity" && packing !== "") {
        throw new RootstepError("MODEL_BAD_BODY", {
          what: `The model server answers packed (${quote(packing, secrets)}), though it was asked not to`,
          where,
          hint: "Switch compression off at the server or at the proxy before it.",
          retryable: false,
        });
      }
      return { status, contentType: header("content-type") ?? "", chunks: read(sent, status, largestBody) };
    },
    explain(error) {
      if (signal?.aborted) return interruption(signal, where);
      if (error instanceof RootstepError) return error;
      if (stopped !== undefined) return stopped;
      return networkError(error, answered, { where, secrets });
    },
    async close() {
      stopListening();
      limits.stop();
      if (exchange === undefined || exchange.over) return;
      const givenUp = new RootstepError("INTERRUPTED", { what: "The call is closed", where });
      if (!answered) return exchange.abort(givenUp);
      // A body read to its end frees the connection for the next call; one that goes on and on is dropped.
      const { abort, next } = exchange;
      const drop = setTimeout(() => abort(givenUp), LINGER_MS);
      try {
        while ((await next()) !== undefined);
      } catch {
        // The answer is complete or the call has failed already: how its connection ends changes neither.
      } finally {
        clearTimeout(drop);
      }
    },
  };
}

const decoder = new TextDecoder();

/** The whole body as text. */
export async function textOf(answer: HttpAnswer): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of answer.chunks) pieces.push(piece);
  const [first] = pieces;
  return decoder.decode(pieces.length === 1 ? first : Buffer.concat(pieces));
}

/**
 * The body as JSON.
 * @throws RootstepError MODEL_BAD_BODY where it is a web page or no JSON
 */
export async function jsonOf(answer: HttpAnswer, where: string, secrets: readonly Secret[]): Promise<unknown> {
  const text = await textOf(answer);
  if (looksLikeHtml(text)) {
    const what = "The model server answered with a web page (HTML) in place of JSON";
    throw new RootstepError("MODEL_BAD_BODY", { what, where, retryable: false });
  }
  try {
    return JSON.parse(text);
  } catch {
    const shown = text.trim() === "" ? "blanks only" : `"${quote(text, secrets)}"`;
    const what = `The model server's answer (${answer.contentType || "no content type"}) is not JSON: ${shown}`;
    throw new RootstepError("MODEL_BAD_BODY", { what, where });
  }
}
