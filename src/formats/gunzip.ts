import { createGunzip } from "node:zlib";

/** Where a gzip stream stops being one. */
export class GzipError extends Error {
  /** True if the stream only ends early; false if bytes are damaged or no gzip at all. */
  readonly truncated: boolean;
  /** Which chunk of the input (from 0) could not be unpacked. */
  readonly chunk: number;

  constructor(truncated: boolean, chunk: number, cause?: unknown) {
    super(truncated ? "the gzip data ends early" : "not gzip, or damaged", { cause });
    this.truncated = truncated;
    this.chunk = chunk;
  }
}

/**
 * Unpacks gzip data as far as it is intact.
 *
 * zlib drops what it unpacked in the call that meets a damaged byte. The good data in it would be lost, so the input is gone
 * over a second time then, the damaged chunk byte by byte.
 *
 * @param open gives the packed data from its start, in the same chunks each time
 * @throws GzipError after everything before the fault was yielded; whatever reading the input throws
 */
export async function* gunzipped(open: () => AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let given = 0;
  try {
    for await (const piece of unpack(open())) {
      given += piece.length;
      yield piece;
    }
  } catch (error) {
    if (!(error instanceof GzipError) || error.truncated) throw error;
    let seen = 0;
    for await (const piece of unpack(inBytes(open(), error.chunk))) {
      seen += piece.length;
      if (seen > given) yield piece.subarray(Math.max(0, piece.length - (seen - given)));
    }
    throw error;
  }
}

/** The chunks, the one at that position in single bytes. */
async function* inBytes(chunks: AsyncIterable<Buffer>, position: number): AsyncGenerator<Buffer> {
  let at = 0;
  for await (const chunk of chunks) {
    if (at++ !== position) yield chunk;
    else for (let i = 0; i < chunk.length; i++) yield chunk.subarray(i, i + 1);
  }
}

/** Piping would drop what is unpacked but not read yet when the stream fails; here each chunk is drained before the next. */
async function* unpack(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip();
  let unpacked: Buffer[] = [];
  gunzip.on("data", (chunk: Buffer) => unpacked.push(chunk));
  const failed = new Promise<Error>((resolve) => gunzip.once("error", resolve));
  // "end" before all is written: bytes follow that are not gzip. Node then never calls back the write that held them.
  const ended = new Promise<"ended">((resolve) => gunzip.once("end", () => resolve("ended")));
  let position = 0;
  const failure = (cause: Error): GzipError =>
    new GzipError("code" in cause && cause.code === "Z_BUF_ERROR", position, cause);
  try {
    for await (const chunk of chunks) {
      const written = new Promise<"written">((resolve) => {
        gunzip.write(chunk, (error) => error ?? resolve("written"));
      });
      const outcome = await Promise.race([failed, ended, written]);
      yield* unpacked;
      unpacked = [];
      if (outcome instanceof Error) throw failure(outcome);
      if (outcome === "ended") throw new GzipError(false, position);
      position++;
    }
    if (position === 0) throw new GzipError(true, position);
    gunzip.end();
    const outcome = await Promise.race([failed, ended]);
    yield* unpacked;
    if (outcome instanceof Error) throw failure(outcome);
  } finally {
    gunzip.destroy();
  }
}
