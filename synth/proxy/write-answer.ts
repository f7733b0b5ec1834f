import type { ServerResponse } from "node:http";
import type { AnswerPieces } from "./answer-port.ts";

/** In bytes. */
const SMALL = 16 * 1024;

/** A recorded answer as it came: its status, its pieces, its end. */
export function writeAnswer({ outcome, status, headers, chunks }: AnswerPieces, response: ServerResponse): void {
  const [only] = chunks;
  if (outcome === "complete" && chunks.length === 1 && only !== undefined) {
    response.writeHead(status, { ...headers, "content-length": only.length });
    // A string goes out in one write with the head; as latin1 it is the same bytes whatever they are.
    if (only.length <= SMALL) response.end(only.toString("latin1"), "latin1");
    else response.end(only);
    return;
  }
  response.writeHead(status === 0 ? 200 : status, headers);
  if (chunks.length === 0 && outcome !== "aborted") response.flushHeaders();
  let at = 0;
  const next = (): void => {
    if (response.destroyed) return;
    const piece = chunks[at++];
    if (piece === undefined) finish(outcome, response);
    // One piece a turn: written at once, they would reach the client as one block.
    else if (response.write(piece)) setImmediate(next);
    else response.once("drain", next);
  };
  next();
}

function finish(outcome: AnswerPieces["outcome"], response: ServerResponse): void {
  if (outcome === "complete") response.end();
  // A cut answer is cut again, once its pieces are out. After an aborted one the client leaves by itself, as it did.
  else if (outcome === "cut") setImmediate(() => response.destroy());
}
