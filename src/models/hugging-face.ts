import { ReadableStream } from "node:stream/web";
import {
  InferenceClient,
  InferenceClientHubApiError,
  InferenceClientInputError,
  InferenceClientProviderApiError,
  InferenceClientProviderOutputError,
  InferenceClientRoutingError,
  type InferenceProviderOrPolicy,
} from "@huggingface/inference";
import type { Dispatcher } from "undici";
import { RootstepError } from "../errors.ts";
import type { CallOptions, ChatModel, ChatRequest, ChatResponse } from "./chat-model.ts";
import type { Clock } from "./clock.ts";
import { agentFor, DEFAULT_TIMEOUTS, type HttpCall, jsonOf, openHttpCall, type Timeouts } from "./http-call.ts";
import { redactedCause, type Secret } from "./key.ts";
import { readCompletion } from "./read-completion.ts";
import { type CallPlace, quote, reportedError } from "./server-failures.ts";
import { parseServerUrl, publicUrl } from "./server-url.ts";
import { streamAssembly } from "./stream-assembly.ts";
import { extraBodySuffix, parseWire, toWireRequest, type WireOptions, wireChunkSchema } from "./wire.ts";

export interface HuggingFaceOptions {
  /** Model on the Hub (`Qwen/Qwen3-8B`), or as a self-hosted endpoint knows it. */
  readonly model: string;
  /** A self-hosted server or an Inference Endpoint (TGI, vLLM); without it the hosted router answers. */
  readonly endpointUrl?: string | undefined;
  /** Which hosted provider answers; default "auto", the first of the account's own order. */
  readonly provider?: InferenceProviderOrPolicy | undefined;
  /** Needed by the hosted router (`hf_…`). */
  readonly apiKey?: Secret | undefined;
  /** Organisation that hosted calls are billed to. */
  readonly billTo?: string | undefined;
  readonly timeouts?: Partial<Timeouts> | undefined;
  readonly stream?: boolean | undefined;
  readonly dispatcher?: Dispatcher | undefined;
  readonly extraBody?: WireOptions["extraBody"];
  readonly clock?: Clock | undefined;
  /** Largest answer in bytes; default 32 MiB. */
  readonly largestBody?: number | undefined;
}

const ROUTER = "https://router.huggingface.co/v1";

/**
 * A chat model through `@huggingface/inference`: hosted by a provider behind Hugging Face's router, or at an endpoint of
 * one's own. The library makes URL, headers and body and reads the events; connections, limits and the meaning of
 * failures are those of the OpenAI-compatible client, because the library has no time limits, repeats a 503 without end
 * and takes a cut stream for a whole one.
 * @throws RootstepError CONFIG_INVALID; KEY_MISSING where the hosted router is asked without a key
 */
export function huggingFace(options: HuggingFaceOptions): ChatModel {
  const endpoint = options.endpointUrl === undefined ? undefined : parseServerUrl(options.endpointUrl, "endpointUrl");
  if (endpoint !== undefined && endpoint.search !== "") {
    const what = `The library cannot call an endpoint with a query: ${publicUrl(endpoint)}`;
    throw new RootstepError("CONFIG_INVALID", { what, where: "endpointUrl" });
  }
  if (endpoint !== undefined && options.provider !== undefined) {
    const what = "A self-hosted endpoint has no provider: give endpointUrl or provider, not both";
    throw new RootstepError("CONFIG_INVALID", { what, where: "provider" });
  }
  if (endpoint === undefined && options.apiKey === undefined) {
    const what = "Hugging Face's hosted router needs an access token";
    throw new RootstepError("KEY_MISSING", { what, where: "environment HF_TOKEN" });
  }
  const provider = options.provider ?? "auto";
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  const dispatcher = options.dispatcher ?? agentFor(timeouts);
  const secrets = options.apiKey === undefined ? [] : [options.apiKey];
  const home = endpoint === undefined ? ROUTER : publicUrl(endpoint);
  const host = endpoint === undefined ? provider : home;

  return {
    id: `hugging-face:${host}#${options.model}${extraBodySuffix(options.extraBody)}`,
    async complete(request: ChatRequest, callOptions: CallOptions = {}): Promise<ChatResponse> {
      const { clock, largestBody } = options;
      const { signal, onDelta } = callOptions;
      const call = openHttpCall({ where: home, secrets, timeouts, dispatcher, signal, clock, largestBody });
      // A client per call: it keeps the token as a plain property, which must not be reachable from the model.
      const client = new InferenceClient(options.apiKey?.reveal() ?? "", {
        retry_on_error: false,
        fetch: fetchThrough(call, secrets),
        ...(options.billTo === undefined ? {} : { billTo: options.billTo }),
        ...(endpoint === undefined ? {} : { endpointUrl: endpoint.href }),
      });
      const stream = options.stream ?? true;
      const args = {
        ...toWireRequest(request, { model: options.model, stream, extraBody: options.extraBody }),
        ...(endpoint === undefined ? { provider } : {}),
      };
      try {
        if (!stream) {
          const value: unknown = await client.chatCompletion(args);
          return readCompletion(value, options.model, { where: call.where, secrets }, onDelta);
        }
        const assembly = streamAssembly(options.model, call.where, onDelta);
        for await (const value of client.chatCompletionStream(args)) {
          assembly.add(parseWire(wireChunkSchema, value, call.where));
        }
        return assembly.finish(false); // the library does not say whether [DONE] came
      } catch (error) {
        const library = signal?.aborted ? undefined : libraryError(error, { where: call.where, secrets });
        throw library ?? call.explain(error);
      } finally {
        await call.close();
      }
    },
  };
}

/** Lets the library make its requests through our call, so that limits and failures are ours. */
function fetchThrough(call: HttpCall, secrets: readonly Secret[]): typeof globalThis.fetch {
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const answer = await call.send(url, {
      method: init?.method ?? "GET",
      headers: Object.fromEntries(new Headers(init?.headers).entries()),
      ...(typeof init?.body === "string" ? { body: init.body } : {}),
    });
    const respond = (body: string | ReadableStream, type: string): Response =>
      new Response(body, { status: answer.status, headers: { "content-type": type } });
    if (answer.contentType.includes("text/event-stream")) {
      return respond(ReadableStream.from(answer.chunks), "text/event-stream");
    }
    const value = await jsonOf(answer, call.where, secrets);
    const reported = reportedError(value, { where: call.where, secrets });
    if (reported !== undefined) throw reported;
    return respond(JSON.stringify(value), "application/json");
  };
}

/** What the library's own errors mean; undefined for those that come from below it. */
function libraryError(error: unknown, place: CallPlace): RootstepError | undefined {
  if (!(error instanceof Error) || error instanceof RootstepError) return undefined;
  const details = {
    what: `Hugging Face client: ${quote(error.message, place.secrets)}`,
    where: place.where,
    cause: redactedCause(error, place.secrets),
  };
  if (error instanceof InferenceClientProviderApiError) {
    return reportedError(error.httpResponse.body, place) ?? new RootstepError("MODEL_BAD_BODY", details);
  }
  if (error instanceof SyntaxError) return new RootstepError("MODEL_BAD_BODY", details);
  if (error instanceof InferenceClientProviderOutputError) return new RootstepError("MODEL_WRONG_SHAPE", details);
  if (error instanceof InferenceClientHubApiError) return new RootstepError("MODEL_REFUSED_REQUEST", details);
  if (error instanceof InferenceClientRoutingError || error instanceof InferenceClientInputError) {
    const hint = "Check model, provider and HF_TOKEN; the hosted router takes tokens that begin with hf_.";
    return new RootstepError("CONFIG_INVALID", { ...details, hint });
  }
  return undefined;
}
