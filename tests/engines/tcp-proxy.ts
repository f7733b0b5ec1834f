import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A TCP proxy on loopback before a real server, for faults that the server itself will not have. */
export interface TcpProxy {
  readonly url: URL;
  /** So many of the next answers break off in their middle, with a reset. */
  cutNext(answers: number): void;
  /** Milliseconds that every piece of an answer is held back. */
  slowDown(ms: number): void;
  /** Resolves when the next piece of a request has gone to the server. */
  nextRequest(): Promise<void>;
  /** Resets all connections and refuses new ones: the machine is gone. */
  die(): Promise<void>;
}

/** Shorter pieces are heads and small answers, which do not break off. In bytes. */
const SHORTEST_CUT = 1_000;

/** Close it by `die`. */
export async function openTcpProxy(target: URL): Promise<TcpProxy> {
  let cuts = 0;
  let delay = 0;
  let asked: (() => void)[] = [];
  const open = new Set<Socket>();

  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        open.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    client.on("data", () => {
      for (const tell of asked) tell();
      asked = [];
    });
    upstream.on("data", (piece) => {
      if (cuts > 0 && piece.byteLength >= SHORTEST_CUT) {
        cuts--;
        client.write(piece.subarray(0, piece.byteLength / 2), () => client.resetAndDestroy());
      } else if (delay === 0) client.write(piece);
      else setTimeout(() => client.write(piece), delay);
    });
  });
  await listening(server);
  const { port } = server.address() as AddressInfo;

  return {
    url: new URL(`http://127.0.0.1:${port}`),
    cutNext: (answers) => {
      cuts = answers;
    },
    slowDown: (ms) => {
      delay = ms;
    },
    nextRequest: () => new Promise((resolve) => asked.push(resolve)),
    async die() {
      if (!server.listening) return;
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of open) socket.resetAndDestroy();
      await closed;
    },
  };
}

function listening(server: Server): Promise<void> {
  return new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
}
