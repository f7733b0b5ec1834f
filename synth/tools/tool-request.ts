import type { IncomingHttpHeaders } from "node:http";

/** A request of the program to a tool, read whole and let in. */
export interface ToolRequest {
  /** As named by `--tool`. */
  readonly tool: string;
  /** Which agent asks, where its URL says so. */
  readonly agent?: string | undefined;
  readonly method: string;
  /** Below the tool's base URL: empty or `/…`. */
  readonly path: string;
  /** With its `?`, or empty. */
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
  /** Uncompressed. */
  readonly body: Buffer;
}

/** Where a tool's URL leads: `/r/RUN.TOKEN[/a/AGENT]/t/TOOL[/…]`. The token is in the path, as headers are the tool's. */
export interface ToolRoute {
  readonly run: string;
  readonly token: string;
  readonly agent: string | undefined;
  readonly tool: string;
  readonly path: string;
  readonly query: string;
}

export const TOOL_NAME = /^[a-z0-9][a-z0-9_-]{0,31}$/u;

const ROUTE = /^\/r\/([^/?.]+)\.([^/?]+)(?:\/a\/([^/?]+))?\/t\/([a-z0-9][a-z0-9_-]{0,31})(\/[^?]*)?(\?.*)?$/u;

export function toolRouteOf(url: string): ToolRoute | undefined {
  const found = ROUTE.exec(url);
  if (found === null) return undefined;
  const [, run = "", token = "", agent, tool = "", path = "", query = ""] = found;
  return { run, token, agent, tool, path, query };
}

/** The header by which MCP over HTTP names a session. */
export const SESSION_HEADER = "mcp-session-id";

export function sessionOf({ headers }: Pick<ToolRequest, "headers">): string | undefined {
  const session = headers[SESSION_HEADER];
  return typeof session === "string" ? session : undefined;
}

/** A standing stream of MCP over HTTP, which a client opens and leaves as it pleases: no exchange of its own. */
export function isListening({ method, headers }: Pick<ToolRequest, "method" | "headers">): boolean {
  return method === "GET" && String(headers.accept).includes("text/event-stream") && hasMcpHeader(headers);
}

const hasMcpHeader = (headers: IncomingHttpHeaders): boolean =>
  headers[SESSION_HEADER] !== undefined || headers["mcp-protocol-version"] !== undefined;
