import type { ServerResponse } from "node:http";
import type { RootstepError } from "../../src/errors.ts";
import type { AnswerPieces, AnswerPort } from "./answer-port.ts";
import { sendError } from "./error-answer.ts";
import { writeAnswer } from "./write-answer.ts";

/** The answer to a request of the proxy. */
export function httpPort(response: ServerResponse): AnswerPort {
  return new HttpPort(response);
}

/** A class, since one is made for each request: an object literal with a getter has a hidden class of its own each time. */
class HttpPort implements AnswerPort {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  replay(pieces: AnswerPieces): void {
    writeAnswer(pieces, this.#response);
  }

  refuse(status: number, code: string, message: string): void {
    sendError(this.#response, status, code, message);
  }

  unreachable(status: number, { code, message }: RootstepError): void {
    sendError(this.#response, status, code, message);
  }

  start(status: number, headers: Readonly<Record<string, string>>): void {
    this.#response.writeHead(status, headers);
    // A stream's first event may be long in coming; any other answer's head goes out with its body.
    if (headers["content-type"]?.startsWith("text/event-stream") === true) this.#response.flushHeaders();
  }

  piece(bytes: Buffer): boolean {
    return this.#response.write(bytes);
  }

  onceDrained(proceed: () => void): void {
    this.#response.once("drain", proceed);
  }

  end(): void {
    this.#response.end();
  }

  /** What the client would have seen without the proxy. */
  breakOff(): void {
    this.#response.destroy();
  }

  onceClosed(told: (hadAll: boolean) => void): void {
    this.#response.once("close", () => told(this.#response.writableFinished));
  }

  get isGone(): boolean {
    return this.#response.destroyed;
  }
}
