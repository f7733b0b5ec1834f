import type { BigIntStats } from "node:fs";
import { open, stat } from "node:fs/promises";
import { sha256 } from "../src/checksum.ts";

/** How far a file has been read: bytes of whole lines, and a chained checksum over them. */
export interface TailPosition {
  readonly bytes: number;
  readonly chain: string;
}

export type TailItem =
  | { readonly kind: "line"; readonly line: string; readonly number: number }
  /** Lines read before stand no more; `kept` of them, from the first, still do. */
  | { readonly kind: "rewound"; readonly kept: number };

/** Reads the whole lines that a growing file gains. A last line without its end is left for the next look. */
export interface LineTail {
  /** Where the last item that was handed out ended. */
  readonly position: TailPosition;
  /** Lines before it. */
  readonly count: number;
  /** What is new since the last look. The file may have been replaced by a shorter or another one. */
  read(): AsyncGenerator<TailItem>;
}

const START: TailPosition = { bytes: 0, chain: "" };

/** @param from a position of an earlier tail: where the file still begins with what was read then, reading goes on after it */
export function openLineTail(path: string, from: TailPosition = START): LineTail {
  /** Positions after each line handed out. */
  let read: TailPosition[] = [];
  let position = from;
  /** The file that was read last; undefined before the first look, which checks what the position claims. */
  let identity: string | undefined;

  const after = (before: TailPosition, line: string): TailPosition => ({
    bytes: before.bytes + Buffer.byteLength(line) + 1,
    chain: sha256(`${before.chain}\n${line}`).slice(0, 16),
  });

  /** Finds in the file as it is now how much of what was read still stands. */
  function compare(lines: readonly string[]): number {
    if (read.length === 0 && position.bytes > 0) {
      // Taken up again: the lines before the position are known by their checksum alone.
      const seen: TailPosition[] = [];
      for (const line of lines) {
        seen.push(after(seen.at(-1) ?? START, line));
        if (seen.at(-1)?.bytes === position.bytes) break;
      }
      if (seen.at(-1)?.bytes === position.bytes && seen.at(-1)?.chain === position.chain) read = seen;
      return read.length;
    }
    let kept = 0;
    for (const line of lines) {
      const here = after(read[kept - 1] ?? START, line);
      if (kept >= read.length || here.chain !== read[kept]?.chain) break;
      kept++;
    }
    return kept;
  }

  return {
    get position() {
      return position;
    },
    get count() {
      return read.length;
    },
    async *read() {
      const found = await look(path, identity, position.bytes);
      if (found === undefined) return;
      const { lines, whole } = found;
      identity = found.identity;
      let fresh = lines;
      if (whole) {
        const before = position;
        const kept = compare(lines);
        read = read.slice(0, kept);
        position = read.at(-1) ?? START;
        if (position.bytes !== before.bytes || position.chain !== before.chain) yield { kind: "rewound", kept };
        fresh = lines.slice(kept);
      }
      for (const line of fresh) {
        position = after(position, line);
        read.push(position);
        yield { kind: "line", line, number: read.length };
      }
    },
  };
}

interface Found {
  readonly identity: string | undefined;
  readonly lines: readonly string[];
  /** True where the lines are all of the file's, not those after the position. */
  readonly whole: boolean;
}

/** The whole lines after a position, or, where another file has taken the path or it is shorter, all of them. */
async function look(path: string, identity: string | undefined, bytes: number): Promise<Found | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  if (found === undefined) return bytes === 0 ? undefined : { identity: undefined, lines: [], whole: true };
  if (identityOf(found) === identity && Number(found.size) === bytes) return undefined;
  const file = await open(path, "r").catch(() => undefined);
  if (file === undefined) return undefined; // replaced in this very moment: the next look sees it
  try {
    const opened = await file.stat({ bigint: true });
    const size = Number(opened.size);
    const whole = identityOf(opened) !== identity || size < bytes;
    const start = whole ? 0 : bytes;
    const buffer = Buffer.alloc(size - start);
    await file.read(buffer, 0, buffer.length, start);
    const end = buffer.lastIndexOf(0x0a) + 1;
    const lines = buffer.subarray(0, end).toString("utf8").split("\n").slice(0, -1);
    return { identity: identityOf(opened), lines, whole };
  } finally {
    await file.close();
  }
}

/** The inode's number alone would not do: file systems give the number of a file that is gone to the next. */
function identityOf({ ino, birthtimeNs }: BigIntStats): string {
  return `${ino}:${birthtimeNs}`;
}
