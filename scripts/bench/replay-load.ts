import { connect, type Socket } from "node:net";

/** One answer's time in milliseconds, in order of asking. */
export type Latencies = readonly number[];

export interface Load {
  readonly port: number;
  readonly path: string;
  readonly token: string;
  readonly connections: number;
}

/**
 * Sends these bodies over keep-alive connections, each connection its next one as soon as it has its answer, and says
 * how long it took. Requests are raw bytes: a client library would take more time than the servers that are measured.
 */
export async function flood(load: Load, bodies: readonly string[]): Promise<{ readonly seconds: number }> {
  const sockets = await Promise.all(Array.from({ length: load.connections }, () => opened(load.port)));
  let next = 0;
  const start = performance.now();
  await Promise.all(
    sockets.map(async (socket) => {
      for (let body = bodies[next++]; body !== undefined; body = bodies[next++])
        await exchange(socket, requestOf(load, body));
    }),
  );
  const seconds = (performance.now() - start) / 1000;
  for (const socket of sockets) socket.destroy();
  return { seconds };
}

/** Sends one request every `everyMs` to each server in turn, so that all are measured under the same noise. */
export async function paced(
  loads: readonly Load[],
  bodies: readonly string[],
  everyMs: number,
): Promise<readonly Latencies[]> {
  const sockets = await Promise.all(loads.map(({ port }) => opened(port)));
  const latencies: number[][] = loads.map(() => []);
  for (const body of bodies) {
    for (const [at, load] of loads.entries()) {
      const socket = sockets[at];
      if (socket === undefined) continue;
      await new Promise((resolve) => setTimeout(resolve, everyMs));
      const start = performance.now();
      await exchange(socket, requestOf(load, body));
      latencies[at]?.push(performance.now() - start);
    }
  }
  for (const socket of sockets) socket.destroy();
  return latencies;
}

export function percentile(values: Latencies, share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

function opened(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => resolve(socket));
    socket.once("error", reject);
  });
}

function requestOf({ path, token }: Load, body: string): string {
  const length = Buffer.byteLength(body);
  return `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nauthorization: Bearer ${token}\r\ncontent-length: ${length}\r\n\r\n${body}`;
}

/** Resolves when the whole answer is there. @throws Error for any status but 200 */
function exchange(socket: Socket, request: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let held = "";
    const onData = (part: Buffer): void => {
      held += part.toString("latin1");
      if (!isWhole(held)) return;
      socket.off("data", onData);
      if (held.startsWith("HTTP/1.1 200")) resolve();
      else reject(new Error(held.slice(0, 2000)));
    };
    socket.on("data", onData);
    socket.write(request);
  });
}

function isWhole(held: string): boolean {
  const headEnd = held.indexOf("\r\n\r\n");
  if (headEnd < 0) return false;
  const length = /\r\ncontent-length: (\d+)/iu.exec(held.slice(0, headEnd))?.[1];
  return length === undefined ? held.endsWith("\r\n0\r\n\r\n") : held.length >= headEnd + 4 + Number(length);
}
