import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";

export interface ExchangeRequest {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string | Uint8Array;
}

export interface ResponseHead {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** One request on the wire: its head, then the pieces of its body, in the order in which they come. */
export interface Exchange {
  /** Rejects with what broke the connection, or with the reason given to `abort`. */
  readonly head: Promise<ResponseHead>;
  /** The next piece of the body; undefined at its end. @throws what `head` would reject with, once the pieces held are read */
  next(): Promise<Uint8Array | undefined>;
  /** True when the body has come to its end, read or not, or has failed. */
  readonly over: boolean;
  /** Gives the request up and drops its connection; nothing once it is over. */
  abort(reason: Error): void;
}

/** Bytes that may wait for their reader before the connection is held back. */
const HELD_BYTES = 1024 * 1024;

/**
 * Sends a request through undici's lowest door. `request()` makes a stream, an asynchronous resource and abort listeners for
 * every call, about a quarter of its processor time, and gives an aborted call that waits for its connection no end.
 */
export function startExchange(dispatcher: Dispatcher, url: URL, request: ExchangeRequest): Exchange {
  let controller: Dispatcher.DispatchController | undefined;
  let settleHead: { resolve(head: ResponseHead): void; reject(error: Error): void } | undefined;
  let wake: (() => void) | undefined;
  let failure: Error | undefined;
  let over = false;
  const held: Uint8Array[] = [];
  let heldBytes = 0;

  const head = new Promise<ResponseHead>((resolve, reject) => {
    settleHead = { resolve, reject };
  });
  const wakeReader = (): void => {
    wake?.();
    wake = undefined;
  };
  const fail = (error: Error): void => {
    if (over) return;
    over = true;
    failure = error;
    settleHead?.reject(error);
    settleHead = undefined;
    wakeReader();
  };

  dispatcher.dispatch(
    {
      origin: url.origin,
      path: url.pathname + url.search,
      method: request.method,
      headers: request.headers,
      ...(request.body === undefined ? {} : { body: request.body }),
    },
    {
      onRequestStart(started) {
        controller = started;
        if (failure !== undefined) started.abort(failure);
      },
      onResponseStart(_, status, headers) {
        if (status < 200) return; // informational: the answer is still to come
        settleHead?.resolve({ status, headers });
        settleHead = undefined;
      },
      onResponseData(current, piece) {
        held.push(piece);
        heldBytes += piece.byteLength;
        if (heldBytes > HELD_BYTES) current.pause();
        wakeReader();
      },
      onResponseEnd() {
        over = true;
        wakeReader();
      },
      onResponseError: (_, error) => fail(error),
    },
  );

  return {
    head,
    get over() {
      return over;
    },
    async next() {
      for (;;) {
        const piece = held.shift();
        if (piece !== undefined) {
          heldBytes -= piece.byteLength;
          if (controller?.paused === true && heldBytes <= HELD_BYTES) controller.resume();
          return piece;
        }
        if (failure !== undefined) throw failure;
        if (over) return undefined;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    abort(reason) {
      if (over) return;
      fail(reason);
      controller?.abort(reason);
    },
  };
}
