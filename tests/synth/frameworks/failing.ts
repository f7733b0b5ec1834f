import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A server before another that answers the n-th POST (from 0) with that status, and hands all else on. */
export async function failing(
  upstream: string,
  statuses: ReadonlyMap<number, number>,
): Promise<{ readonly url: string; readonly failed: number; close(): Promise<void> }> {
  let posts = 0;
  let failed = 0;
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const status = request.method === "POST" ? statuses.get(posts++) : undefined;
      if (status !== undefined) {
        failed++;
        // Both forms: the libraries of OpenAI read the first, others the second.
        response.writeHead(status, { "content-type": "application/json", "retry-after-ms": "10", "retry-after": "0" });
        response.end(JSON.stringify({ error: { message: "once", type: "server_error", code: null } }));
        return;
      }
      void handOn(new URL(request.url ?? "/", upstream), request.method ?? "GET", Buffer.concat(parts)).then(
        ({ code, type, body }) => {
          response.writeHead(code, { "content-type": type });
          response.end(body);
        },
        (error: unknown) => response.destroy(error instanceof Error ? error : undefined),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    get failed() {
      return failed;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function handOn(url: URL, method: string, body: Buffer) {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(url, method === "GET" ? { method } : { method, headers, body: new Uint8Array(body) });
  const type = answer.headers.get("content-type") ?? "application/json";
  return { code: answer.status, type, body: Buffer.from(await answer.arrayBuffer()) };
}
