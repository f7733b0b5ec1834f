import { hash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import { asRootstepError, RootstepError } from "../../src/errors.ts";
import type { Endpoint } from "../tape/folder-schema.ts";
import { type ToolRequest, type ToolRoute, toolRouteOf } from "../tools/tool-request.ts";
import { sendError } from "./error-answer.ts";
import { type Handler, type KeyLane, laneOf } from "./request.ts";

/** No prompt is that large. In bytes. */
export const LARGEST_REQUEST = 64 * 1024 * 1024;

export interface ProxyOptions {
  /** The one run this proxy serves. */
  readonly run: string;
  /** What the program has to show as its key: other programs of this machine have no business here. */
  readonly token: string;
  readonly handler: Handler;
  /** Answers for the tools of the run; absent: it has none. */
  readonly tools?: ((request: ToolRequest, response: ServerResponse) => void) | undefined;
  /** 0 picks a free port. */
  readonly port?: number | undefined;
}

/** Turns of the event loop until every closed socket has told its response; a few are enough. */
const MOST_TURNS = 1_000;

/** Requests that were turned away: they tell why a program "made no call". */
export interface Refusals {
  otherKey: number;
  otherRun: number;
  otherPath: number;
}

export interface RunningProxy {
  /** `http://127.0.0.1:PORT/r/RUN/v1`; one agent's own is `…/r/RUN/a/AGENT/v1`. */
  readonly baseUrl: string;
  /** The same for programs that set keys of their own: the token is in the path, the key is the lane. */
  readonly keyedBaseUrl: string;
  /** `http://127.0.0.1:PORT/r/RUN.TOKEN/t`: a tool is at `…/t/NAME`. */
  readonly toolsUrl: string;
  readonly refusals: Readonly<Refusals>;
  close(): Promise<void>;
}

/** `/r/RUN[.TOKEN][/a/AGENT]/v1/ENDPOINT` */
const ROUTE =
  /^\/r\/([^/?.]+)(?:\.([^/?]+))?(?:\/a\/([^/?]+))?\/v1\/(chat\/completions|completions|responses|embeddings|models)(?:\/[^?]*)?(\?.*)?$/u;

/**
 * The HTTP front of a tape, on loopback only. What answers is the handler: the upstream while recording, the tape in a
 * replay.
 *
 * @throws RootstepError PORT_IN_USE
 */
export async function serveProxy({ run, token, handler, tools, port = 0 }: ProxyOptions): Promise<RunningProxy> {
  const refusals: Refusals = { otherKey: 0, otherRun: 0, otherPath: 0 };
  const tokenBytes = Buffer.from(token, "utf8");

  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const route = ROUTE.exec(request.url ?? "");
    const tool = route === null && tools !== undefined ? toolRouteOf(request.url ?? "") : undefined;
    if (tool !== undefined) {
      serveTool(tool, request, response);
      return;
    }
    const [, runAsked, pathToken, agent, rest = "", query = ""] = route ?? [];
    const endpoint = endpointOf(request.method, rest, request.url ?? "");
    if (route === null || endpoint === undefined) {
      refusals.otherPath++;
      const what = `no route ${request.method} ${(request.url ?? "").split("?")[0]?.replace(token, "[token]")}`;
      sendError(response, 404, "NO_ROUTE", `${what}; the base URL is ${baseUrl}`);
      return;
    }
    if (runAsked !== run) {
      refusals.otherRun++;
      sendError(
        response,
        404,
        "OTHER_RUN",
        `this proxy serves run ${run}, not ${runAsked}: start the program through rootstep`,
      );
      return;
    }
    const key = letIn(request, pathToken, tokenBytes);
    if (key === "refused") {
      refusals.otherKey++;
      sendError(response, 401, "OTHER_KEY", "the key is not this run's: let the program read it from OPENAI_API_KEY");
      return;
    }
    readBody(request, response, (body) => {
      const path = `/${endpoint === "models" ? pathBelowV1(request.url ?? "") : endpoint}`;
      const lane = laneOf(agent === undefined ? undefined : decoded(agent), key, endpoint, body);
      const retry = Number(request.headers["x-stainless-retry-count"] ?? 0) || 0;
      const asked = { endpoint, path, query, headers: request.headers, body, lane, retry };
      guarded(response, () => handler(asked, response));
    });
  };

  const serveTool = (route: ToolRoute, request: IncomingMessage, response: ServerResponse): void => {
    if (route.run !== run || letIn(request, route.token, tokenBytes) === "refused") {
      refusals.otherKey++;
      sendError(response, 401, "OTHER_KEY", "the tool's address is of another run: let the program read it anew");
      return;
    }
    readBody(request, response, (body) => {
      const { tool, path, query } = route;
      const agent = route.agent === undefined ? undefined : decoded(route.agent);
      const asked = { tool, agent, method: request.method ?? "GET", path, query, headers: request.headers, body };
      guarded(response, () => tools?.(asked, response));
    });
  };

  let underWay = 0;
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    underWay++;
    response.once("close", () => underWay--);
    serve(request, response);
  });
  /** Responses learn of their sockets' end some turns after the server does: only then all of them are on tape. */
  const whenAnswered = (then: () => void, turns = MOST_TURNS): void => {
    if (underWay === 0 || turns === 0) then();
    else setImmediate(whenAnswered, then, turns - 1);
  };
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const where = `127.0.0.1:${port}`;
      const inUse = cause.code === "EADDRINUSE";
      reject(inUse ? new RootstepError("PORT_IN_USE", { what: `port ${port} is taken`, where, cause }) : cause);
    });
    server.listen(port, "127.0.0.1", resolve);
  });
  const address = server.address();
  const origin = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : port}`;
  const baseUrl = `${origin}/r/${run}/v1`;
  return {
    baseUrl,
    keyedBaseUrl: `${origin}/r/${run}.${token}/v1`,
    toolsUrl: `${origin}/r/${run}.${token}/t`,
    refusals,
    close: () =>
      new Promise((resolve) => {
        server.close(() => whenAnswered(resolve));
        server.closeAllConnections();
      }),
  };
}

function guarded(response: ServerResponse, handle: () => void): void {
  try {
    handle();
  } catch (thrown) {
    const failed = asRootstepError(thrown);
    sendError(response, 500, failed.code, failed.message);
  }
}

/** GET of models (also of one model), POST of the others, nothing below them. */
function endpointOf(method: string | undefined, path: string, url: string): Endpoint | undefined {
  if (path === "models") return method === "GET" ? path : undefined;
  if (method !== "POST" || pathBelowV1(url) !== path) return undefined;
  switch (path) {
    case "chat/completions":
    case "completions":
    case "responses":
    case "embeddings":
      return path;
    default:
      return undefined;
  }
}

function pathBelowV1(url: string): string {
  return url.slice(url.indexOf("/v1/") + 4).split("?")[0] ?? "";
}

const BEARER = /^Bearer\s+/iu;

/** The run's token as the key, or `TOKEN.AGENT`, or the token in the path and any key. */
function letIn(request: IncomingMessage, pathToken: string | undefined, token: Buffer): KeyLane | "refused" {
  const { authorization } = request.headers;
  const other = request.headers["api-key"] ?? request.headers["x-api-key"];
  const key = authorization?.replace(BEARER, "") ?? (typeof other === "string" ? other : "");
  const isToken = (text: string): boolean => {
    const bytes = Buffer.from(text, "utf8");
    return bytes.length === token.length && timingSafeEqual(bytes, token);
  };
  if (pathToken !== undefined) {
    if (!isToken(pathToken)) return "refused";
    return key === "" || isToken(key) ? undefined : { agent: `key-${hash("sha256", key).slice(0, 8)}` };
  }
  if (isToken(key)) return undefined;
  const dot = key.indexOf(".");
  if (dot > 0 && isToken(key.slice(0, dot))) return { agent: key.slice(dot + 1) };
  return "refused";
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray % is a name too
  }
}

/** Hands on the whole body, unpacked; a bad one is answered here, and one whose client has left goes nowhere. */
function readBody(request: IncomingMessage, response: ServerResponse, use: (body: Buffer) => void): void {
  const parts: Buffer[] = [];
  let size = 0;
  const refuse = (error: RootstepError): void => {
    sendError(response, error.code === "USAGE" ? 413 : 400, "BAD_REQUEST", error.message);
  };
  const handOn = (body: Buffer): void => {
    if (!response.destroyed) use(body);
  };
  request.on("data", (part: Buffer) => {
    size += part.length;
    if (size <= LARGEST_REQUEST) parts.push(part);
    else parts.length = 0; // read on to its end: a client that is still sending does not read our answer
  });
  request.on("end", () => {
    const [only] = parts;
    const body = parts.length === 1 && only !== undefined ? only : Buffer.concat(parts);
    if (size > LARGEST_REQUEST) return refuse(tooLarge());
    const encoding = request.headers["content-encoding"] ?? "identity";
    if (encoding === "identity") return handOn(body);
    void decompressed(encoding, body).then(handOn, (error: unknown) => refuse(asRootstepError(error)));
  });
}

const tooLarge = (): RootstepError =>
  new RootstepError("USAGE", { what: `the request is larger than ${LARGEST_REQUEST} bytes` });

const decoders = { gzip: promisify(gunzip), deflate: promisify(inflate), br: promisify(brotliDecompress) };

async function decompressed(encoding: string, body: Buffer): Promise<Buffer> {
  if (encoding !== "gzip" && encoding !== "deflate" && encoding !== "br") {
    throw new RootstepError("MODEL_REFUSED_REQUEST", { what: `the request is compressed as ${encoding}` });
  }
  try {
    return await decoders[encoding](body, { maxOutputLength: LARGEST_REQUEST });
  } catch (cause) {
    throw new RootstepError("MODEL_REFUSED_REQUEST", { what: `the request's body is not ${encoding}`, cause });
  }
}
