import { laneOf, type ProxyRequest } from "../proxy/request.ts";
import type { Endpoint } from "../tape/folder-schema.ts";

export type Fetch = typeof globalThis.fetch;
export type FetchInput = Parameters<Fetch>[0];
export type FetchInit = Parameters<Fetch>[1];

/** A call of `fetch`, read whole. */
export interface FetchedRequest {
  readonly method: string;
  readonly url: URL;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly signal: AbortSignal | undefined;
}

/** Without waiting where the body is text or bytes, as client libraries send it: calls keep their order. */
export function readFetched(input: FetchInput, init: FetchInit): FetchedRequest | Promise<FetchedRequest> {
  const body = input instanceof Request ? undefined : plainBody(init?.body);
  if (body === undefined) return readRequest(new Request(input, init));
  return {
    method: (init?.method ?? "GET").toUpperCase(),
    url: new URL(String(input)),
    headers: Object.fromEntries(new Headers(init?.headers)),
    body,
    signal: init?.signal ?? undefined,
  };
}

/** Undefined for what has to be read first: streams, forms, blobs. */
function plainBody(body: NonNullable<FetchInit>["body"]): Buffer | undefined {
  if (body === undefined || body === null) return Buffer.alloc(0);
  if (typeof body === "string") return Buffer.from(body, "utf8");
  return body instanceof Uint8Array ? Buffer.from(body.buffer, body.byteOffset, body.byteLength) : undefined;
}

async function readRequest(request: Request): Promise<FetchedRequest> {
  return {
    method: request.method,
    url: new URL(request.url),
    headers: Object.fromEntries(request.headers),
    body: Buffer.from(await request.arrayBuffer()),
    signal: request.signal,
  };
}

/** The same request as the proxy's handlers take it; undefined where it is no call of a model. */
export function modelRequest({ method, url, headers, body }: FetchedRequest, agent?: string): ProxyRequest | undefined {
  const route = routeOf(method, url.pathname);
  if (route === undefined) return undefined;
  return {
    ...route,
    query: url.search,
    headers,
    body,
    lane: agent === undefined ? laneOf(undefined, undefined, route.endpoint, body) : { name: agent, by: "wrapper" },
    retry: Number(headers["x-stainless-retry-count"] ?? 0) || 0,
  };
}

/** The end of the path, whatever base URL it stands on. */
function routeOf(method: string, path: string): { readonly endpoint: Endpoint; readonly path: string } | undefined {
  if (method === "GET") {
    const [models] = /\/models(?:\/.+)?$/u.exec(path) ?? [];
    return models === undefined ? undefined : { endpoint: "models", path: models };
  }
  if (method !== "POST") return undefined;
  for (const endpoint of ["chat/completions", "completions", "responses", "embeddings"] as const) {
    if (path.endsWith(`/${endpoint}`)) return { endpoint, path: `/${endpoint}` };
  }
  return undefined;
}
