import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

/** An MCP server of the official library: `add` tells of its progress, `count` counts in its session, `fail` fails. */
export function calculator(): McpServer {
  let count = 0;
  const server = new McpServer({ name: "calculator", version: "1.0.0" });
  server.registerTool(
    "add",
    { inputSchema: { a: z.number(), b: z.number() } },
    async ({ a, b }, { _meta, ...extra }) => {
      const progressToken = _meta?.progressToken;
      if (progressToken !== undefined) {
        await extra.sendNotification({
          method: "notifications/progress",
          params: { progressToken, progress: 1, total: 2 },
        });
      }
      return { content: [{ type: "text", text: String(a + b) }] };
    },
  );
  server.registerTool("count", {}, () => ({ content: [{ type: "text", text: String(++count) }] }));
  server.registerTool("fail", {}, () => {
    throw new Error("the calculator is broken");
  });
  return server;
}

export interface McpHttpServer {
  readonly url: string;
  /** Ids of all sessions so far. */
  readonly sessions: readonly string[];
  /** Methods of JSON-RPC and of HTTP without a body, in order. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** The calculator over streamable HTTP on a free port, a server object per session. */
export async function serveCalculator({ json = false } = {}): Promise<McpHttpServer> {
  const transports = new Map<string, StreamableHTTPServerTransport>();
  const sessions: string[] = [];
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const text = Buffer.concat(parts).toString("utf8");
    const body: unknown = text === "" ? undefined : JSON.parse(text);
    asked.push(methodOf(body) ?? request.method ?? "");
    const id = String(request.headers["mcp-session-id"] ?? "");
    let transport = transports.get(id);
    // A session begins without an id, and nothing goes on in one that is not there.
    if (transport === undefined && (methodOf(body) !== "initialize" || id !== "")) {
      response.writeHead(404).end("no such session");
      return;
    }
    if (transport === undefined) {
      const made: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        enableJsonResponse: json,
        onsessioninitialized: (session) => {
          sessions.push(session);
          transports.set(session, made);
        },
      });
      // The library's own types part where optional fields may be undefined.
      await calculator().connect(made as Parameters<McpServer["connect"]>[0]);
      transport = made;
    }
    await transport.handleRequest(request, response, body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    sessions,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function methodOf(body: unknown): string | undefined {
  return typeof body === "object" && body !== null && "method" in body ? String(body.method) : undefined;
}
