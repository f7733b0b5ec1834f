import { type ErrorCode, RootstepError } from "../../src/errors.ts";
import type { AnswerPort } from "../proxy/answer-port.ts";
import type { Ending } from "../proxy/call-log.ts";
import { relay } from "../proxy/live.ts";
import { createHttpOrigin, forwardedHeaders, type HttpOrigin, type OutgoingRequest } from "../proxy/upstream.ts";
import { locationBelow } from "./redirect.ts";
import type { ToolSessions } from "./sessions.ts";
import { SESSION_HEADER, sessionOf, type ToolRequest } from "./tool-request.ts";

/** The tools of a run that answer live. */
export interface ToolServers {
  /** Base URLs by name, without anything secret. */
  readonly shown: Readonly<Record<string, string>>;
  get(tool: string): HttpOrigin | undefined;
  close(): Promise<void>;
}

/** A tool may stream for as long as it likes; the run's own time limit ends it. In milliseconds. */
const LIMITS = { idleMs: 0, totalMs: 24 * 60 * 60 * 1000 };

export function openToolServers(addresses: ReadonlyMap<string, URL>): ToolServers {
  const servers = new Map(
    [...addresses].map(([tool, base]) => [tool, createHttpOrigin({ base, limits: LIMITS, handsOnRedirects: true })]),
  );
  return {
    shown: Object.fromEntries([...servers].map(([tool, { shown }]) => [tool, shown])),
    get: (tool) => servers.get(tool),
    async close() {
      await Promise.all([...servers.values()].map((server) => server.close()));
    },
  };
}

/** Headers of one connection, and our own. Keys and cookies go on: they are the tool's. */
const NOT_FORWARDED =
  /^(?:host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|content-encoding|accept-encoding|expect|mcp-session-id|x-rootstep-.*)$/u;

/** The request as the tool gets it. */
export function outgoing(request: ToolRequest, session: string | undefined, token: string): OutgoingRequest {
  const headers = forwardedHeaders(request.headers, NOT_FORWARDED);
  if (String(headers.authorization ?? "").includes(token)) delete headers.authorization; // the run's, and nobody else's
  if (session !== undefined) headers[SESSION_HEADER] = session;
  const { method, path, query, body } = request;
  return { method, path, query, headers, body: body.length === 0 ? null : body };
}

export interface LiveToolOptions {
  readonly server: HttpOrigin;
  readonly sessions: ToolSessions;
  /** The run's. */
  readonly token: string;
  readonly ended: (ending: Ending) => void;
}

/** Asks the tool and hands its answer on piece by piece. */
export function askTool(request: ToolRequest, port: AnswerPort, options: LiveToolOptions): void {
  const { server, sessions, token, ended } = options;
  const { tool } = request;
  const asked = sessionOf(request);
  const session = asked === undefined ? undefined : (sessions.realOf(asked) ?? asked);
  relay(
    (sink) => {
      const exchange = server.send(outgoing(request, session, token), {
        ...sink,
        start(status, headers) {
          const { location } = headers;
          const below = location === undefined ? undefined : locationBelow(server.base, request, location);
          if (location === undefined || below !== undefined) return sink.start(status, headers);
          const what = `the tool ${tool} redirects to ${new URL(location, server.base).origin}, past the tape`;
          const hint = "Name that address with --tool as well, or give it in the place of this one.";
          sink.fail(new RootstepError("TOOL_UNREACHABLE", { what, where: server.shown, hint }), false);
          exchange.abort();
        },
        fail: (error, started) => sink.fail(toolError(error, tool), started),
      });
      return exchange;
    },
    port,
    ended,
    (_, headers) => {
      const { location, ...rest } = headers;
      const real = headers[SESSION_HEADER];
      return {
        ...rest,
        ...(typeof location === "string" ? { location: locationBelow(server.base, request, location) } : {}),
        ...(typeof real === "string" ? { [SESSION_HEADER]: sessions.standInFor(tool, real) } : {}),
      };
    },
  );
}

/** What the HTTP client says of a model server, said of a tool. */
export function toolError(error: RootstepError, tool: string): RootstepError {
  if (!error.code.startsWith("MODEL_")) return error;
  const code: ErrorCode = error.code === "MODEL_TIMEOUT" ? "TOOL_TIMEOUT" : "TOOL_UNREACHABLE";
  const what = error.what.replace("the upstream", `the tool ${tool}`);
  return new RootstepError(code, { what, where: error.where, cause: error.cause });
}
