import type { RootstepError } from "../../src/errors.ts";
import type { StoredCall } from "../tape/folder-schema.ts";

/** An answer from the tape or in its place. */
export interface AnswerPieces {
  readonly outcome: StoredCall["response"]["outcome"];
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly chunks: readonly Buffer[];
}

/**
 * Where the answer to one request goes: over HTTP (the proxy) or into a `Response` (the `fetch` wrapper). Either `replay`,
 * `refuse` or `unreachable` answers, or `start`, any number of `piece`, then `end` or `breakOff`.
 */
export interface AnswerPort {
  /** A recorded answer as it came: its status, its pieces, its end. */
  replay(pieces: AnswerPieces): void;
  /** rootstep's own error in OpenAI's form, so that a client library shows its message and does not try again. */
  refuse(status: number, code: string, message: string): void;
  /** No live answer began. */
  unreachable(status: number, error: RootstepError): void;
  start(status: number, headers: Readonly<Record<string, string>>): void;
  /** @returns false to be given no more until `drained` */
  piece(bytes: Buffer): boolean;
  onceDrained(proceed: () => void): void;
  end(): void;
  /** The live answer broke off: so does this one. */
  breakOff(error: RootstepError): void;
  /** Told once, when the answer is all out (`hadAll`) or its client has left. */
  onceClosed(told: (hadAll: boolean) => void): void;
  /** True after the client has left. */
  readonly isGone: boolean;
}
