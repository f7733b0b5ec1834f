import { foldRetries } from "../tape/fold.ts";
import type { StoredCall } from "../tape/folder-schema.ts";
import type { TapeFolder } from "../tape/loader.ts";
import type { Recording } from "../tape/matcher.ts";
import { canonicalBody } from "../tape/request-key.ts";

/** A recorded call that a replay can answer with. */
export interface ProxyRecording extends Recording {
  readonly call: StoredCall;
  /** The answer's pieces as they came. */
  chunks(): readonly Buffer[];
}

export interface TapeRecordings {
  readonly calls: readonly ProxyRecording[];
  /** Attempts folded into a later one. */
  readonly retried: number;
  /** Calls that ended in 429 or 5xx for good: they are never replayed. */
  readonly failed: readonly StoredCall[];
  /** The last answer to GET models, by path. */
  readonly models: ReadonlyMap<string, ProxyRecording>;
}

/** The calls of a tape as the program meant them, numbered from 0. */
export function recordingsOf(tape: TapeFolder): TapeRecordings {
  const chunksOf = ({ response }: StoredCall): readonly Buffer[] =>
    cutInto(tape.bodies.get(response.body), response.chunks);
  const recording = (call: StoredCall, index: number): ProxyRecording => ({
    index,
    lane: call.lane,
    raw: `${call.endpoint} ${call.request.body}`,
    key: call.request.key,
    text: () => canonicalBody(tape.bodies.get(call.request.body)),
    call,
    chunks: () => chunksOf(call),
  });
  const { calls, retried, failed } = foldRetries(tape.calls);
  const models = tape.calls.filter(({ endpoint, response }) => endpoint === "models" && response.status === 200);
  return {
    calls: calls.map(recording),
    retried: retried.length,
    failed,
    models: new Map(models.map((call, index) => [call.request.query ?? "", recording(call, index)])),
  };
}

/** The pieces of a body as they came. */
export function cutInto(bytes: Buffer, lengths: readonly number[] | undefined): readonly Buffer[] {
  if (lengths === undefined) return bytes.length === 0 ? [] : [bytes];
  let from = 0;
  return lengths.map((length) => {
    const piece = bytes.subarray(from, from + length);
    from += length;
    return piece;
  });
}
