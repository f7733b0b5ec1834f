import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { Agent } from "undici";

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface LoopbackServer {
  readonly url: string;
  readonly port: number;
  readonly seen: SeenRequest[];
  /** Resolves when the n-th request (from 1) has arrived whole. */
  arrived(n: number): Promise<void>;
  close(): Promise<void>;
}

export type Handler = (request: SeenRequest, response: ServerResponse) => void | Promise<void>;

/** An HTTP server on a free port of 127.0.0.1. */
export async function startServer(handler: Handler): Promise<LoopbackServer> {
  const seen: SeenRequest[] = [];
  let waiting: { n: number; resolve: () => void }[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const whole = { method, url, headers, body: Buffer.concat(parts).toString("utf8") };
      seen.push(whole);
      for (const { n, resolve } of waiting) if (seen.length >= n) resolve();
      waiting = waiting.filter(({ n }) => seen.length < n);
      void handler(whole, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    seen,
    arrived: (n) =>
      new Promise((resolve) => {
        if (seen.length >= n) resolve();
        else waiting.push({ n, resolve });
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Leads every connection, whatever its host and protocol, to that port: the hosted router, played on loopback. */
export function everythingTo(port: number): Agent {
  return new Agent({
    connect: (_options, callback) => {
      const socket = connect(port, "127.0.0.1");
      socket.once("connect", () => callback(null, socket));
      socket.once("error", (error) => callback(error, null));
    },
  });
}
