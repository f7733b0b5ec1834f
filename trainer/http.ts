import { isAscii } from "node:buffer";
import type { Dispatcher } from "undici";
import type { z } from "zod";
import { RootstepError } from "../src/errors.ts";
import { agentFor, type HttpAnswer, jsonOf, openHttpCall, type Timeouts, textOf } from "../src/models/http-call.ts";
import type { Secret } from "../src/models/key.ts";
import { publicUrl, withPath } from "../src/models/server-url.ts";

/** Time limits of one request to a sampler, an engine or a cluster, in milliseconds. A step may take minutes. */
export const SERVER_TIMEOUTS: Timeouts = { connectMs: 10_000, firstByteMs: 600_000, idleMs: 60_000, totalMs: 900_000 };

/** A server that training talks to. */
export interface ServerAddress {
  readonly url: URL;
  readonly key?: Secret | undefined;
  readonly timeouts?: Partial<Timeouts> | undefined;
  /** Makes the connections (a test); one of its own by default. */
  readonly dispatcher?: Dispatcher | undefined;
}

export interface ServerRequest {
  readonly method?: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly json?: unknown;
  /** A body that is made already, with its content type. */
  readonly body?: { readonly type: string; readonly bytes: Uint8Array | string };
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
  /** In bytes; default 256 MiB. */
  readonly largestBody?: number;
  /** Takes what need not be parsed out of an answer in JSON. */
  readonly shorten?: (body: Buffer) => Buffer;
}

/** A connection to one server: time limits, key and errors of the catalogue on every request. */
export interface ServerConnection {
  /** Its address as it may be printed. */
  readonly name: string;
  /** @throws RootstepError MODEL_* with what failed and where; DATA_INVALID where the JSON has another shape */
  json<T>(schema: z.ZodType<T>, request: ServerRequest): Promise<T>;
  text(request: ServerRequest): Promise<string>;
  bytes(request: ServerRequest): Promise<Uint8Array>;
}

const LARGEST_BODY = 256 * 1024 * 1024;

/** Opens no connection yet: the first request does. */
export function connectTo(address: ServerAddress): ServerConnection {
  const timeouts = { ...SERVER_TIMEOUTS, ...address.timeouts };
  const dispatcher = address.dispatcher ?? agentFor(timeouts);
  const secrets = address.key === undefined ? [] : [address.key];

  async function exchange<T>(
    request: ServerRequest,
    read: (answer: HttpAnswer, where: string) => Promise<T>,
  ): Promise<T> {
    // A path may carry a query: withPath would quote its question mark.
    const [path = "", query] = request.path.split("?", 2);
    const url = withPath(address.url, path);
    if (query !== undefined) url.search = query;
    const where = publicUrl(url);
    const { signal, largestBody = LARGEST_BODY } = request;
    const call = openHttpCall({ where, secrets, timeouts, dispatcher, signal, largestBody });
    try {
      return await read(await call.send(url, wireRequest(request, address.key)), where);
    } catch (error) {
      throw call.explain(error);
    } finally {
      await call.close();
    }
  }

  async function parsedJson(answer: HttpAnswer, { shorten }: ServerRequest, where: string): Promise<unknown> {
    const body = await bytesOf(answer);
    const short = shorten?.(body) ?? body;
    try {
      // Numbers are ASCII, which needs no decoding.
      return JSON.parse(short.toString(isAscii(short) ? "latin1" : "utf8"));
    } catch {
      return await jsonOf({ ...answer, chunks: single(body) }, where, secrets);
    }
  }

  return {
    name: publicUrl(address.url),
    json: (schema, request) =>
      exchange(request, async (answer, where) => {
        const parsed = schema.safeParse(await parsedJson(answer, request, where));
        if (parsed.success) return parsed.data;
        const issue = parsed.error.issues[0];
        throw new RootstepError("ENGINE_FAILED", {
          what: `the server's answer has another shape: ${issue?.path.join(".") || "body"}: ${issue?.message}`,
          where,
          hint: "Check that the URL names the server that the configuration says, in the version it was tested with.",
        });
      }),
    text: (request) => exchange(request, (answer) => textOf(answer)),
    bytes: (request) => exchange(request, (answer) => bytesOf(answer)),
  };
}

function wireRequest(request: ServerRequest, key: Secret | undefined) {
  const { json, body } = request;
  return {
    method: request.method ?? (json === undefined && body === undefined ? "GET" : "POST"),
    headers: {
      accept: request.accept ?? "application/json",
      ...(json !== undefined && { "content-type": "application/json" }),
      ...(body !== undefined && { "content-type": body.type }),
      ...(key !== undefined && { authorization: `Bearer ${key.reveal()}` }),
    },
    ...(json !== undefined && { body: JSON.stringify(json) }),
    ...(body !== undefined && { body: body.bytes }),
  };
}

async function bytesOf(answer: HttpAnswer): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of answer.chunks) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function* single(body: Uint8Array): AsyncGenerator<Uint8Array> {
  yield body;
}
