import { z } from "zod";
import { RootstepError } from "../../src/errors.ts";
import { connectTo, type ServerAddress, type ServerRequest } from "../http.ts";
import { withoutPromptEcho } from "./prompt-echo.ts";

// A step's answers hold a million numbers: one loop per array, not one schema or call per element.
const tokenIds = z.custom<readonly number[]>(areTokenIds, "must be a list of token ids");
/** The servers write NaN as null. */
const logprobList = z.custom<readonly (number | null)[]>(areLogprobs, "must be a list of log-probabilities");
const logprobEntry = z.looseObject({ logprob: z.number() });

const completionsSchema = z.looseObject({
  model: z.string(),
  choices: z.array(
    z.looseObject({
      index: z.int().nonnegative(),
      token_ids: tokenIds,
      prompt_token_ids: tokenIds.nullish(),
      logprobs: z.looseObject({ token_logprobs: logprobList }),
      finish_reason: z.string().nullable(),
      prompt_logprobs: z.array(z.record(z.string(), logprobEntry).nullable()).nullish(),
    }),
  ),
});
const modelsSchema = z.looseObject({
  data: z.array(z.looseObject({ id: z.string(), max_model_len: z.int().nullish() })),
});
const weightInfoSchema = z.looseObject({ weight_version: z.string().nullish() });

/** One sampled sequence as the server gives it; `logprobs` holds NaN where the server did. */
export interface VllmChoice {
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
  /** stop · length · abort (the server gave it up: the tokens are a part) */
  readonly finishReason: string;
}

export interface VllmSampling {
  /** Served name: the base model or a LoRA adapter. */
  readonly model: string;
  readonly prompt: readonly number[];
  readonly n: number;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly seed: number;
}

/** What vLLM says of its load; undefined where it has no such gauge. */
export interface VllmGauges {
  readonly running: number;
  readonly waiting: number;
}

/** A vLLM server: what rollouts and weight sync need of its API, version 0.32 and its neighbours. */
export interface VllmServer {
  readonly name: string;
  /** Sampled sequences in the order of their index. Checked: the model's name, n, the prompt's tokens, lengths. */
  sample(sampling: VllmSampling, signal?: AbortSignal): Promise<readonly VllmChoice[]>;
  /** Log-probabilities of given tokens (all but the first), at temperature 1. */
  promptLogprobs(model: string, tokens: readonly number[], signal?: AbortSignal): Promise<readonly number[]>;
  models(signal?: AbortSignal): Promise<readonly { readonly id: string; readonly maxLength: number | undefined }[]>;
  gauges(signal?: AbortSignal): Promise<VllmGauges>;
  health(signal?: AbortSignal): Promise<void>;
  loadLora(name: string, folder: string, signal?: AbortSignal): Promise<void>;
  unloadLora(name: string, signal?: AbortSignal): Promise<void>;
  pause(mode: "keep" | "abort" | "wait", signal?: AbortSignal): Promise<void>;
  resume(signal?: AbortSignal): Promise<void>;
  startWeightUpdate(signal?: AbortSignal): Promise<void>;
  /** What the update is made of depends on the server's transfer backend. */
  updateWeights(info: unknown, signal?: AbortSignal): Promise<void>;
  finishWeightUpdate(version: string, signal?: AbortSignal): Promise<void>;
  weightVersion(signal?: AbortSignal): Promise<string | undefined>;
  /** Reads the weights anew from a folder on the server's side. */
  reloadWeights(folder: string, signal?: AbortSignal): Promise<void>;
  resetPrefixCache(signal?: AbortSignal): Promise<void>;
}

/** @param address where the server itself answers, without /v1 */
export function openVllmServer(address: ServerAddress): VllmServer {
  const server = connectTo(address);
  const post = async (path: string, json: unknown, signal: AbortSignal | undefined): Promise<void> => {
    await server.text({ method: "POST", path, json, signal, accept: "*/*" });
  };

  async function completions(request: Omit<ServerRequest, "path">, model: string) {
    const answer = await server.json(completionsSchema, { ...request, path: "/v1/completions" });
    if (answer.model === model) return answer;
    throw new RootstepError("ENGINE_FAILED", {
      what: `asked for model ${model}, the server answered as ${answer.model}`,
      where: server.name,
      hint: "Check --served-model-name and the names of the adapters that are loaded.",
    });
  }

  return {
    name: server.name,
    async sample({ model, prompt, n, maxTokens, temperature, seed }, signal) {
      const asked = {
        model,
        n,
        max_tokens: maxTokens,
        temperature,
        seed,
        top_p: 1,
        logprobs: 0,
        return_token_ids: true,
      };
      const tokens = JSON.stringify(prompt);
      const body = {
        type: "application/json",
        bytes: `${JSON.stringify(asked).slice(0, -1)},"prompt":${tokens}}`,
      };
      const shorten = (answer: Buffer): Buffer => withoutPromptEcho(answer, tokens);
      const answer = await completions({ body, shorten, signal }, model);
      return readChoices(answer.choices, { prompt, n, maxTokens }, server.name);
    },
    async promptLogprobs(model, tokens, signal) {
      const asked = { model, prompt: tokens, max_tokens: 1, temperature: 1, logprobs: 0 };
      const json = { ...asked, prompt_logprobs: 0, return_token_ids: true };
      const answer = await completions({ json, signal }, model);
      const entries = answer.choices[0]?.prompt_logprobs ?? [];
      return tokens.slice(1).map((token, i) => {
        const logprob = entries[i + 1]?.[String(token)]?.logprob;
        if (logprob !== undefined) return logprob;
        const what = `no log-probability for token ${i + 1} of the prompt`;
        throw new RootstepError("ENGINE_FAILED", { what, where: server.name });
      });
    },
    async models(signal) {
      const { data } = await server.json(modelsSchema, { path: "/v1/models", signal });
      return data.map(({ id, max_model_len }) => ({ id, maxLength: max_model_len ?? undefined }));
    },
    gauges: async (signal) => readGauges(await server.text({ path: "/metrics", accept: "text/plain", signal })),
    // 200 with an empty body, which the client takes for a failure: the load endpoint of the same server says as much.
    async health(signal) {
      await server.json(modelsSchema, { path: "/v1/models", signal });
    },
    loadLora: (name, folder, signal) =>
      post("/v1/load_lora_adapter", { lora_name: name, lora_path: folder, load_inplace: true }, signal),
    unloadLora: (name, signal) => post("/v1/unload_lora_adapter", { lora_name: name }, signal),
    pause: (mode, signal) => post(`/pause?mode=${mode}`, {}, signal),
    resume: (signal) => post("/resume", {}, signal),
    startWeightUpdate: (signal) => post("/start_weight_update", {}, signal),
    updateWeights: (info, signal) => post("/update_weights", info, signal),
    finishWeightUpdate: (version, signal) => post("/finish_weight_update", { weight_version: version }, signal),
    async weightVersion(signal) {
      const { weight_version } = await server.json(weightInfoSchema, { path: "/weight_info", signal });
      return weight_version ?? undefined;
    },
    reloadWeights: (folder, signal) =>
      post("/collective_rpc", { method: "reload_weights", kwargs: { weights_path: folder } }, signal),
    resetPrefixCache: (signal) => post("/reset_prefix_cache", {}, signal),
  };
}

/** Refuses what would silently train on something else than was sampled. @throws RootstepError ENGINE_FAILED */
function readChoices(
  choices: z.infer<typeof completionsSchema>["choices"],
  asked: { readonly prompt: readonly number[]; readonly n: number; readonly maxTokens: number },
  where: string,
): readonly VllmChoice[] {
  const failed = (what: string): RootstepError => new RootstepError("ENGINE_FAILED", { what, where });
  const sorted = [...choices].sort((a, b) => a.index - b.index);
  if (sorted.length !== asked.n || sorted.some(({ index }, i) => index !== i)) {
    throw failed(`the server returned ${sorted.length} of ${asked.n} completions`);
  }
  return sorted.map(({ token_ids: tokens, prompt_token_ids, logprobs, finish_reason }) => {
    if (prompt_token_ids != null && !same(prompt_token_ids, asked.prompt)) {
      throw failed("the server sampled from another prompt than it was sent: its tokens differ");
    }
    if (tokens.length === 0) throw failed("the server returned a completion without a token");
    if (logprobs.token_logprobs.length !== tokens.length) {
      throw failed(
        `the server returned ${logprobs.token_logprobs.length} log-probabilities for ${tokens.length} tokens`,
      );
    }
    // At the end of the context the server cuts max_tokens by itself and says "length" as if that had been asked for.
    if (finish_reason === "length" && tokens.length < asked.maxTokens) {
      throw new RootstepError("ENGINE_FAILED", {
        what: `a completion ended after ${tokens.length} of ${asked.maxTokens} tokens at the end of the server's context`,
        where,
        hint: "Lower maxPrompt or maxCompletion, or start the server with a larger --max-model-len.",
      });
    }
    return {
      tokens,
      logprobs: withNaN(logprobs.token_logprobs),
      finishReason: finish_reason ?? "unknown",
    };
  });
}

function areTokenIds(value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  for (let i = 0; i < value.length; i++) if (!(Number.isInteger(value[i]) && value[i] >= 0)) return false;
  return true;
}

function areLogprobs(value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  for (let i = 0; i < value.length; i++) if (typeof value[i] !== "number" && value[i] !== null) return false;
  return true;
}

const noneMissing = (logprobs: readonly (number | null)[]): logprobs is readonly number[] => !logprobs.includes(null);

const withNaN = (logprobs: readonly (number | null)[]): readonly number[] =>
  noneMissing(logprobs) ? logprobs : logprobs.map((logprob) => logprob ?? Number.NaN);

function same(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** Sums the gauges over the server's engines. */
function readGauges(metrics: string): VllmGauges {
  const sum = (name: string): number => {
    const lines = metrics.matchAll(new RegExp(`^vllm:${name}(?:\\{[^}]*\\})? (\\S+)$`, "gmu"));
    return [...lines].reduce((total, [, value]) => total + Number(value), 0);
  };
  return { running: sum("num_requests_running"), waiting: sum("num_requests_waiting") };
}
