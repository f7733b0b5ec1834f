import type { UnderlyingSource } from "node:stream/web";
import type { AnswerPieces, AnswerPort } from "../proxy/answer-port.ts";
import { errorAnswer } from "../proxy/error-answer.ts";

/** The answer to a call of a wrapped `fetch`. */
export interface ResponsePort extends AnswerPort {
  readonly response: Promise<Response>;
  /** The client's signal fired, or the recording is over. */
  leave(reason: unknown): void;
}

type ResponseBody = ConstructorParameters<typeof Response>[0];

/** What a live answer may be ahead of its reader, in bytes. */
const AHEAD = 64 * 1024;

export function responsePort(): ResponsePort {
  let settle: { resolve(response: Response): void; reject(reason: unknown): void } = { resolve() {}, reject() {} };
  const response = new Promise<Response>((resolve, reject) => {
    settle = { resolve, reject };
  });
  let body: ReadableStreamDefaultController<Uint8Array> | undefined;
  let state: "open" | "over" | "gone" = "open";
  const closing: ((hadAll: boolean) => void)[] = [];
  const draining: (() => void)[] = [];

  const close = (hadAll: boolean): void => {
    if (state !== "open") return;
    state = hadAll ? "over" : "gone";
    for (const told of closing.splice(0)) told(hadAll);
    for (const proceed of draining.splice(0)) proceed();
  };
  const fail = (reason: unknown): void => {
    if (state !== "open") return;
    body?.error(reason);
    settle.reject(reason); // of no effect once the response is out
  };
  const respond = (status: number, headers: Readonly<Record<string, string>>, content: ResponseBody): void =>
    settle.resolve(new Response(NO_BODY.has(status) ? null : content, { status, headers }));

  return {
    response,
    replay({ outcome, status, headers, chunks }: AnswerPieces) {
      const [only] = chunks;
      const known = status === 0 ? 200 : status;
      if (outcome === "complete" && chunks.length <= 1) {
        respond(known, headers, only ?? null);
        close(true);
        return;
      }
      let at = 0;
      const source: UnderlyingSource<Uint8Array> = {
        start: (controller) => {
          body = controller;
        },
        // One piece a read, as they came.
        pull: (controller) => {
          const piece = chunks[at++];
          if (piece !== undefined) {
            controller.enqueue(new Uint8Array(piece)); // the client's own: it may change or transfer it
            if (at === chunks.length && outcome === "complete") {
              controller.close();
              close(true);
            }
          } else if (outcome === "cut") {
            controller.error(new TypeError("terminated"));
            close(false);
          } // After an aborted one the client leaves by itself, as it did.
        },
        cancel: () => close(false),
      };
      respond(known, headers, new ReadableStream(source, { highWaterMark: 0 }));
    },
    refuse(status, code, message) {
      const { headers, body: text } = errorAnswer(code, message);
      respond(status, headers, text);
      close(true);
    },
    unreachable(_status, error) {
      fail(error.cause ?? error); // what the client would have seen without the wrapper
      close(true);
    },
    start(status, headers) {
      const source: UnderlyingSource<Uint8Array> = {
        start: (controller) => {
          body = controller;
        },
        pull: () => {
          for (const proceed of draining.splice(0)) proceed();
        },
        cancel: () => close(false),
      };
      respond(status, headers, new ReadableStream(source, new ByteLengthQueuingStrategy({ highWaterMark: AHEAD })));
    },
    piece(bytes) {
      if (state !== "open" || body === undefined) return true;
      body.enqueue(new Uint8Array(bytes));
      return (body.desiredSize ?? 1) > 0;
    },
    onceDrained: (proceed) => void draining.push(proceed),
    end() {
      if (state === "open") body?.close();
      close(true);
    },
    breakOff(error) {
      fail(error.cause ?? error);
      close(false);
    },
    onceClosed: (told) => void closing.push(told),
    get isGone() {
      return state === "gone";
    },
    leave(reason) {
      fail(reason);
      close(false);
    },
  };
}

const NO_BODY = new Set([204, 205, 304]);
