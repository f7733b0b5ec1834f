import { createHash } from "node:crypto";
import { throwIfInterrupted, untilInterrupted } from "../interruption.ts";
import type { CacheStore } from "./cache-store.ts";
import type { CallOptions, ChatModel, ChatRequest, ChatResponse } from "./chat-model.ts";

import { canonicalJson } from "./content-key.ts";
import { emitWhole } from "./emit-whole.ts";
import { messagesJson } from "./message-json.ts";

export interface CacheCounts {
  /** Answered from the store. */
  readonly hits: number;
  /** Asked of the model. */
  readonly misses: number;
  /** Waited for the same request of another caller. */
  readonly joined: number;
}

export interface CachedModel extends ChatModel {
  counts(): CacheCounts;
}

/**
 * The address of an answer: what was asked of whom, and for the how-manieth time on purpose. SHA-256 of the canonical JSON of
 * `{ epoch, model, request }`, put together so that the messages are not quoted again.
 */
export function cacheKey(model: string, request: ChatRequest, epoch = 0): string {
  const { messages, ...rest } = request;
  const parameters = Object.entries(rest).filter(([, value]) => value !== undefined);
  const fields = (those: typeof parameters): string[] =>
    those.map(([name, value]) => `${JSON.stringify(name)}:${canonicalJson(value)}`).sort();
  const before = fields(parameters.filter(([name]) => name < "messages"));
  const after = fields(parameters.filter(([name]) => name > "messages"));
  const head = `{"epoch":${canonicalJson(epoch)},"model":${JSON.stringify(model)},"request":{`;
  return createHash("sha256")
    .update(`${head}${[...before, '"messages":'].join(",")}`, "utf8")
    .update(messagesJson(messages))
    .update(`${after.map((field) => `,${field}`).join("")}}}`, "utf8")
    .digest("hex");
}

interface Flight {
  readonly landing: Promise<{ readonly response: ChatResponse; readonly kept: boolean }>;
  readonly abort: AbortController;
  callers: number;
  landed: boolean;
}

/**
 * Answers a request it has seen from the store. Identical requests at the same time are asked once; that one call is
 * given up only when every caller has given up. Failures are not kept. A listener gets a kept answer in one piece.
 */
export function withCache(model: ChatModel, store: CacheStore): CachedModel {
  const flights = new Map<string, Flight>();
  let hits = 0;
  let misses = 0;
  let joined = 0;

  async function lookUpOrAsk(key: string, request: ChatRequest, options: CallOptions, signal: AbortSignal) {
    const kept = await store.get(key);
    if (kept !== undefined) return { response: kept, kept: true };
    misses += 1;
    const response = await model.complete(request, { ...options, signal });
    await store.set({ key, model: model.id, epoch: options.epoch ?? 0, response });
    return { response, kept: false };
  }

  return {
    id: model.id,
    counts: () => ({ hits, misses, joined }),
    async complete(request, options = {}) {
      const { signal, onDelta } = options;
      throwIfInterrupted(signal, model.id);
      const key = cacheKey(model.id, request, options.epoch);
      const running = flights.get(key);
      const abort = running?.abort ?? new AbortController();
      const flight = running ?? {
        landing: lookUpOrAsk(key, request, options, abort.signal),
        abort,
        callers: 0,
        landed: false,
      };
      flights.set(key, flight);
      flight.callers += 1;
      try {
        const { response, kept } = await untilInterrupted(flight.landing, signal, model.id);
        flight.landed = true;
        if (kept) hits += 1;
        else if (running !== undefined) joined += 1;
        if (kept || running !== undefined) emitWhole(response, onDelta);
        return response;
      } finally {
        flight.callers -= 1;
        if (flight.callers === 0) {
          if (flights.get(key) === flight) flights.delete(key);
          if (!flight.landed) abort.abort(); // every caller left
        }
      }
    },
  };
}
