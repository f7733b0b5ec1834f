import { PROVIDERS_OR_POLICIES } from "@huggingface/inference";
import type { Dispatcher } from "undici";
import { z } from "zod";
import { type Budget, withBudget } from "./budget.ts";
import { withCache } from "./cache.ts";
import type { CacheStore } from "./cache-store.ts";
import type { ChatModel, ChatRequest } from "./chat-model.ts";
import { type Clock, systemClock } from "./clock.ts";
import { canonicalJson } from "./content-key.ts";
import { DEFAULT_TIMEOUTS } from "./http-call.ts";
import { huggingFace } from "./hugging-face.ts";
import { type Environment, keyFromEnvironment, type Secret } from "./key.ts";
import { withLimiter } from "./limiter.ts";
import { openAICompatible } from "./openai-compatible.ts";
import { DEFAULT_RETRY, withRetry } from "./retry.ts";
import { isLoopback, parseServerUrl } from "./server-url.ts";

const milliseconds = z.number().int().positive();

const shared = {
  model: z.string().min(1).describe("model name as the server knows it"),
  apiKeyEnv: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the NAME of an environment variable, not a key")
    .nullable()
    .optional()
    .describe("name of the environment variable that holds the API key; null for a server without one"),
  stream: z.boolean().default(true).describe("ask for a stream of events"),
  temperature: z.number().min(0).max(2).optional(),
  topP: z.number().gt(0).max(1).optional(),
  maxTokens: z.number().int().positive().optional().describe("completion tokens at most"),
  seed: z.number().int().optional().describe("seed sent with every request"),
  extraBody: z.record(z.string(), z.unknown()).optional().describe("further fields of the request, sent as they are"),
  timeouts: z
    .strictObject({
      connectMs: milliseconds.default(DEFAULT_TIMEOUTS.connectMs).describe("until the connection stands"),
      firstByteMs: milliseconds.default(DEFAULT_TIMEOUTS.firstByteMs).describe("until the answer's first byte"),
      idleMs: milliseconds.default(DEFAULT_TIMEOUTS.idleMs).describe("between two pieces of the answer"),
      totalMs: milliseconds.default(DEFAULT_TIMEOUTS.totalMs).describe("for the whole call"),
    })
    .prefault({})
    .describe("time limits in milliseconds"),
  retries: z
    .strictObject({
      attempts: z.number().int().min(1).default(DEFAULT_RETRY.attempts).describe("requests in all"),
      baseMs: milliseconds.default(DEFAULT_RETRY.baseMs).describe("upper end of the first wait, then doubled"),
      maxMs: milliseconds.default(DEFAULT_RETRY.maxMs).describe("upper end of any wait"),
      longestRetryAfterMs: milliseconds
        .default(DEFAULT_RETRY.longestRetryAfterMs)
        .describe("a server that asks for a longer wait is given up"),
    })
    .prefault({})
    .describe("how failures that another try can mend are repeated"),
  concurrency: z.number().int().min(1).default(8).describe("calls at the same time"),
  requestsPerMinute: z.number().int().min(1).optional().describe("calls begun within any 60 seconds"),
  prices: z
    .strictObject({ prompt: z.number().nonnegative(), completion: z.number().nonnegative() })
    .optional()
    .describe("money per million tokens; needed for a cost cap"),
};

/** A model server in a configuration. The key itself is never part of it. */
export const modelConfigSchema = z.discriminatedUnion("provider", [
  z.strictObject({
    provider: z.literal("openai-compatible"),
    baseUrl: z.string().describe("where the API begins, often ending in /v1"),
    maxTokensField: z
      .enum(["max_tokens", "max_completion_tokens"])
      .optional()
      .describe("max_completion_tokens for newer OpenAI models"),
    ...shared,
  }),
  z.strictObject({
    provider: z.literal("hugging-face"),
    endpointUrl: z.string().optional().describe("a self-hosted endpoint; without it the hosted router answers"),
    inferenceProvider: z.enum(PROVIDERS_OR_POLICIES).optional().describe("hosted provider; default auto"),
    billTo: z.string().optional().describe("organisation that hosted calls are billed to"),
    ...shared,
  }),
]);
export type ModelConfig = z.infer<typeof modelConfigSchema>;

/** What the caller adds to a configuration. */
export interface ModelSurroundings {
  readonly budget?: Budget | undefined;
  /** Keeps answers; hits pass neither budget nor limiter. */
  readonly cache?: CacheStore | undefined;
  readonly clock?: Clock | undefined;
  readonly dispatcher?: Dispatcher | undefined;
}

/**
 * The model that a configuration names: defaults → cache → retries → limiter → budget → client.
 * @throws RootstepError CONFIG_INVALID, KEY_MISSING
 */
export function modelFromConfig(
  config: ModelConfig,
  environment: Environment,
  { budget, cache, clock = systemClock, dispatcher }: ModelSurroundings = {},
): ChatModel {
  const client = clientFromConfig(config, environment, clock, dispatcher);
  const charged = budget === undefined ? client : withBudget(client, budget, config.prices ?? budget.options.prices);
  const retried = withRetry(withLimiter(charged, config, clock), config.retries, clock);
  const kept = cache === undefined ? retried : withCache(retried, cache);
  return withDefaults(kept, {
    ...(config.temperature === undefined ? {} : { temperature: config.temperature }),
    ...(config.topP === undefined ? {} : { topP: config.topP }),
    ...(config.maxTokens === undefined ? {} : { maxTokens: config.maxTokens }),
    ...(config.seed === undefined ? {} : { seed: config.seed }),
  });
}

function clientFromConfig(
  config: ModelConfig,
  environment: Environment,
  clock: Clock,
  dispatcher: Dispatcher | undefined,
): ChatModel {
  const { model, stream, extraBody } = config;
  const common = { model, stream, extraBody, timeouts: config.timeouts, clock, dispatcher };
  switch (config.provider) {
    case "openai-compatible": {
      const { baseUrl, maxTokensField } = config;
      const apiKey = keyFor(config.apiKeyEnv, "OPENAI_API_KEY", baseUrl, environment);
      return openAICompatible({ ...common, baseUrl, maxTokensField, apiKey });
    }
    case "hugging-face": {
      const { endpointUrl, inferenceProvider, billTo } = config;
      const apiKey = keyFor(config.apiKeyEnv, "HF_TOKEN", endpointUrl, environment);
      return huggingFace({ ...common, endpointUrl, provider: inferenceProvider, billTo, apiKey });
    }
  }
}

/** A server on this machine gets a key only where its variable is named: a hosted service's key is not its business. */
function keyFor(
  named: string | null | undefined,
  usual: string,
  url: string | undefined,
  environment: Environment,
): Secret | undefined {
  if (named === null) return undefined;
  const local = url !== undefined && isLoopback(parseServerUrl(url, "the model's URL"));
  if (local && named === undefined) return undefined;
  return keyFromEnvironment([named ?? usual], environment);
}

type Defaults = Pick<ChatRequest, "temperature" | "topP" | "maxTokens" | "seed">;

/** Fills in what a request leaves open. The id names the defaults, because they change answers. */
export function withDefaults(model: ChatModel, defaults: Defaults): ChatModel {
  if (Object.keys(defaults).length === 0) return model;
  return {
    id: `${model.id} ${canonicalJson(defaults)}`,
    complete: (request, options) => model.complete({ ...defaults, ...request }, options),
  };
}
