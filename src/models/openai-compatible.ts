import type { Dispatcher } from "undici";
import type { CallOptions, ChatModel, ChatRequest, ChatResponse } from "./chat-model.ts";
import type { Clock } from "./clock.ts";
import { agentFor, DEFAULT_TIMEOUTS, jsonOf, openHttpCall, type Timeouts } from "./http-call.ts";
import type { Secret } from "./key.ts";
import { readCompletion, readCompletionStream } from "./read-completion.ts";
import { parseServerUrl, publicUrl, secretsOfUrl, withPath } from "./server-url.ts";
import { extraBodySuffix, type WireOptions, wireBody } from "./wire.ts";

export interface OpenAICompatibleOptions {
  /** Where the API begins, `/chat/completions` not included: `http://127.0.0.1:8000/v1`. */
  readonly baseUrl: string;
  /** Model name as the server knows it. */
  readonly model: string;
  readonly apiKey?: Secret | undefined;
  readonly timeouts?: Partial<Timeouts> | undefined;
  /** Ask for a stream (default): the idle limit then notices a hanging server long before the total limit. */
  readonly stream?: boolean | undefined;
  /** Makes the connections (a proxy, a test); `connectMs` is then its own affair. */
  readonly dispatcher?: Dispatcher | undefined;
  readonly extraBody?: WireOptions["extraBody"];
  readonly maxTokensField?: WireOptions["maxTokensField"];
  readonly clock?: Clock | undefined;
  /** Largest answer in bytes; default 32 MiB. */
  readonly largestBody?: number | undefined;
}

/**
 * A chat model behind any server that speaks OpenAI's `POST /chat/completions`: vLLM, SGLang, llama.cpp, Ollama, OpenAI.
 * One call is one request: retries, limits, caches and budgets are wrapped around it.
 * @throws RootstepError CONFIG_INVALID where the base URL is none or has a password in it
 */
export function openAICompatible(options: OpenAICompatibleOptions): ChatModel {
  const base = parseServerUrl(options.baseUrl, "baseUrl");
  const url = withPath(base, "/chat/completions");
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  const dispatcher = options.dispatcher ?? agentFor(timeouts);
  const secrets = [...(options.apiKey === undefined ? [] : [options.apiKey]), ...secretsOfUrl(base)];
  const stream = options.stream ?? true;
  const place = { where: publicUrl(url), secrets };
  const wire = { ...options, stream };

  return {
    id: `openai-compatible:${publicUrl(base)}#${options.model}${extraBodySuffix(options.extraBody)}`,
    async complete(request: ChatRequest, callOptions: CallOptions = {}): Promise<ChatResponse> {
      const { clock, largestBody } = options;
      const call = openHttpCall({ ...place, timeouts, dispatcher, signal: callOptions.signal, clock, largestBody });
      try {
        const answer = await call.send(url, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            accept: stream ? "text/event-stream, application/json" : "application/json",
            ...(options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey.reveal()}` }),
          },
          body: wireBody(request, wire),
        });
        // Some servers ignore `stream`: what came decides how it is read.
        if (answer.contentType.includes("text/event-stream")) {
          return await readCompletionStream(answer.chunks, options.model, place, callOptions.onDelta);
        }
        return readCompletion(await jsonOf(answer, place.where, secrets), options.model, place, callOptions.onDelta);
      } catch (error) {
        throw call.explain(error);
      } finally {
        await call.close();
      }
    },
  };
}
