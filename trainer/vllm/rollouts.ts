import pLimit from "p-limit";
import { asRootstepError, RootstepError } from "../../src/errors.ts";
import { type Clock, systemClock } from "../../src/models/clock.ts";
import { derivedSeed, stream } from "../../src/random.ts";
import type { Completion, RolloutSource, SampleRequest } from "../engines/engine.ts";
import type { VllmServer } from "./server.ts";

export interface VllmRolloutOptions {
  /** Servers that all hold the same weights. */
  readonly servers: readonly VllmServer[];
  /** Served name: the base model's, or an adapter's. */
  readonly model: string;
  /** Version of the policy that the servers hold now; noted with every sample. */
  readonly policyVersion?: () => number | undefined;
  readonly maxCompletion: number;
  /** Requests in flight over all servers; each asks for a whole group. */
  readonly concurrency: number;
  /** Requests for one group in all, the first included. */
  readonly attempts: number;
  /** Milliseconds that a server which failed is left alone, doubled with each further failure. */
  readonly restMs?: number;
  readonly clock?: Clock;
  /** Hears of every request that is made again. */
  readonly onRetry?: (error: RootstepError, server: string) => void;
}

interface Load {
  readonly server: VllmServer;
  /** Our own requests there now. */
  inFlight: number;
  /** What its gauges said beyond our own when last asked: others' work. */
  foreign: number;
  failures: number;
  restUntil: number;
}

/** A gauge is asked again after so many milliseconds. */
const GAUGE_AGE_MS = 1_000;
const LONGEST_REST_MS = 30_000;

/**
 * Rollouts from vLLM servers, token ids in and out. One request asks for the n completions of one prompt, with a seed
 * that depends on the stream's name and the prompt's place alone. A group counts only when all of it came from one
 * answer: what a failed or aborted request left behind is dropped whole, so no sample counts twice.
 */
export function vllmRollouts(options: VllmRolloutOptions): RolloutSource {
  const { clock = systemClock, restMs = 2_000 } = options;
  if (options.servers.length === 0) throw new RootstepError("CONFIG_INVALID", { what: "no vLLM server is named" });
  const loads: Load[] = options.servers.map((server) => ({
    server,
    inFlight: 0,
    foreign: 0,
    failures: 0,
    restUntil: 0,
  }));
  let gaugesAt = Number.NEGATIVE_INFINITY;
  let gauges: Promise<unknown> = Promise.resolve();

  /** The gauges are a hint for the choice of a server: one that does not answer keeps its last figure. */
  async function askGauges(signal: AbortSignal | undefined): Promise<void> {
    if (loads.length === 1) return;
    if (clock.now() - gaugesAt >= GAUGE_AGE_MS) {
      gaugesAt = clock.now();
      gauges = Promise.all(loads.map((load) => readGauges(load, signal)));
    }
    await gauges;
  }

  async function readGauges(load: Load, signal: AbortSignal | undefined): Promise<void> {
    try {
      const { running, waiting } = await load.server.gauges(signal);
      load.foreign = Math.max(0, running + waiting - load.inFlight);
    } catch (error) {
      if (signal?.aborted) throw error;
    }
  }

  /** The least loaded server that is not at rest; if all are, the one whose rest ends first. */
  function choose(): Load {
    const now = clock.now();
    const awake = loads.filter(({ restUntil }) => restUntil <= now);
    const weight = ({ inFlight, foreign }: Load): number => inFlight + foreign;
    const [best] =
      awake.length > 0
        ? awake.sort((a, b) => weight(a) - weight(b))
        : [...loads].sort((a, b) => a.restUntil - b.restUntil);
    if (best === undefined) throw new RootstepError("INTERNAL", { what: "no server to choose from" });
    return best;
  }

  async function attempt(load: Load, request: SampleRequest, p: number): Promise<readonly Completion[]> {
    const prompt = request.prompts[p] ?? [];
    const policyVersion = options.policyVersion?.();
    load.inFlight++;
    try {
      const choices = await load.server.sample(
        {
          model: options.model,
          prompt,
          n: request.n,
          maxTokens: options.maxCompletion,
          temperature: request.temperature,
          seed: derivedSeed(request.seed, "vllm", p),
        },
        request.signal,
      );
      return choices.map(({ tokens, logprobs, finishReason }) => {
        if (finishReason === "stop" || finishReason === "length") {
          return { tokens, logprobs, finishReason, ...(policyVersion !== undefined && { policyVersion }) };
        }
        const what = `the server ended a completion with "${finishReason}" after ${tokens.length} tokens`;
        throw new RootstepError("ENGINE_FAILED", {
          what,
          where: load.server.name,
          retryable: finishReason === "abort",
        });
      });
    } finally {
      load.inFlight--;
    }
  }

  /** Requests that fail together are one failure of the server. */
  function rest(load: Load, error: RootstepError): void {
    const now = clock.now();
    if (load.restUntil > now) return;
    load.failures++;
    // Servers that failed together do not come back together.
    const jitter = stream(process.pid, "rest", load.server.name, load.failures).next();
    const wait = Math.min(LONGEST_REST_MS, restMs * 2 ** (load.failures - 1)) * (0.5 + jitter / 2);
    load.restUntil = now + (error.retryAfterMs ?? 0) + wait;
  }

  async function sampleGroup(request: SampleRequest, p: number): Promise<readonly Completion[]> {
    for (let tries = 1; ; tries++) {
      await askGauges(request.signal);
      const load = choose();
      const wait = load.restUntil - clock.now();
      if (wait > 0) await clock.sleep(wait, request.signal);
      try {
        const group = await attempt(load, request, p);
        load.failures = 0;
        return group;
      } catch (thrown) {
        const error = asRootstepError(thrown);
        if (request.signal?.aborted || !error.retryable || tries >= options.attempts) throw error;
        rest(load, error);
        options.onRetry?.(error, load.server.name);
      }
    }
  }

  return {
    id: `vllm:${options.model}`,
    async sample(request) {
      const limit = pLimit(options.concurrency);
      const failed = new AbortController();
      const signal = request.signal === undefined ? failed.signal : AbortSignal.any([request.signal, failed.signal]);
      const groups = request.prompts.map((_, p) =>
        limit(() => sampleGroup({ ...request, signal }, p)).catch((error: unknown) => {
          // The first failure ends what is still in flight: its groups would be thrown away.
          limit.clearQueue();
          failed.abort(error);
          throw error;
        }),
      );
      return await Promise.all(groups);
    },
  };
}
