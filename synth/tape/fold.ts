import type { StoredCall } from "./folder-schema.ts";

export interface FoldedCalls {
  /** The calls of the run as the program meant them, in order; a replay numbers them from 0. */
  readonly calls: readonly StoredCall[];
  /** Attempts that a later identical request of the same lane replaced. */
  readonly retried: readonly StoredCall[];
  /** 429, 5xx and unreachable answers that nothing replaced: the program gave up, and they are never replayed. */
  readonly failed: readonly StoredCall[];
}

/** The attempts at one request that nothing replaced yet; nearly always there is one. */
type Attempts = StoredCall | StoredCall[];

/**
 * Folds a client's retries into one call. An attempt counts as replaced when the same lane sends the same body again
 * after it failed (429, 5xx, cut, aborted), marked as a retry or not, or sends it marked as a retry: what the program
 * then saw is the later answer.
 */
export function foldRetries(stored: readonly StoredCall[]): FoldedCalls {
  const ordered = stored
    .filter(({ endpoint }) => endpoint !== "models") // asked by client libraries as they please: no call of an agent
    .sort((a, b) => a.index - b.index);
  const attempts = new Map<string, Map<string, Attempts>>();
  const replaced = new Set<StoredCall>();
  for (const call of ordered) {
    const { lane } = call;
    const ofLane = attempts.get(lane) ?? new Map<string, Attempts>();
    if (ofLane.size === 0) attempts.set(lane, ofLane);
    const earlier = ofLane.get(call.request.key);
    if (earlier === undefined) {
      ofLane.set(call.request.key, call);
      continue;
    }
    const open = Array.isArray(earlier) ? earlier : [earlier];
    // Only what had ended: of two equal requests under way at once neither is the other's retry.
    const at = open.findIndex(
      (attempt) => attempt.askedAt + attempt.tookMs <= call.askedAt && (hasFailed(attempt) || call.retry > 0),
    );
    for (const attempt of at < 0 ? [] : open.splice(at, 1)) replaced.add(attempt);
    open.push(call);
    ofLane.set(call.request.key, open);
  }
  const remaining = ordered.filter((call) => !replaced.has(call));
  return {
    calls: remaining.filter((call) => !isRefused(call)),
    retried: ordered.filter((call) => replaced.has(call)),
    failed: remaining.filter(isRefused),
  };
}

/** Statuses after which clients ask again. */
export function isRetryStatus(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

function isRefused({ response }: StoredCall): boolean {
  return response.outcome === "unreachable" || isRetryStatus(response.status);
}

function hasFailed(call: StoredCall): boolean {
  return call.response.outcome !== "complete" || isRetryStatus(call.response.status);
}
