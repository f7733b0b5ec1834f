import { closeSync, fsyncSync, writeSync } from "node:fs";

/** Appends lines to an open file, many by one write where they come close together. */
export interface LineAppender {
  /** The line is written when it returns. */
  append(line: string): void;
  /** The line is written when it resolves: together with all others that came in the same turn of the event loop. */
  appendSoon(line: string): Promise<void>;
  /** Writes what waits, flushes to the disk and closes the file. */
  close(): void;
}

/**
 * A process that is killed loses at most lines that were not acknowledged, and leaves at most one torn line, at the end. A
 * write that fails leaves the position where it was: the next one begins there.
 *
 * @param position bytes of the file that stand
 * @param failed what a failed write is called
 */
export function appendLines(descriptor: number, position: number, failed: (cause: unknown) => Error): LineAppender {
  let end = position;
  let waiting: { readonly line: string; resolve(): void; reject(error: Error): void }[] = [];

  const write = (text: string): void => {
    const bytes = Buffer.from(text, "utf8");
    try {
      for (let done = 0; done < bytes.length; ) {
        done += writeSync(descriptor, bytes, done, bytes.length - done, end + done);
      }
    } catch (cause) {
      throw failed(cause);
    }
    end += bytes.length;
  };
  const writeWaiting = (): void => {
    const batch = waiting;
    waiting = [];
    if (batch.length === 0) return;
    try {
      write(batch.map(({ line }) => `${line}\n`).join(""));
    } catch (error) {
      for (const { reject } of batch) reject(error instanceof Error ? error : failed(error));
      return;
    }
    for (const { resolve } of batch) resolve();
  };

  return {
    append(line) {
      writeWaiting();
      write(`${line}\n`);
    },
    appendSoon: (line) =>
      new Promise((resolve, reject) => {
        if (waiting.length === 0) setImmediate(writeWaiting);
        waiting.push({ line, resolve, reject });
      }),
    close() {
      writeWaiting();
      fsyncSync(descriptor);
      closeSync(descriptor);
    },
  };
}
