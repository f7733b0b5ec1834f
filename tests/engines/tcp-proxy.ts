import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A TCP proxy on loopback before a real server, for faults that the server itself will not have. */
export interface TcpProxy {
  readonly url: URL;
  /** So many of the next answers break off in their middle, with a reset. */
  cutNext(answers: number): void;
  /** Milliseconds that every piece of an answer is held back. */
  slowDown(ms: number): void;
  /** Resolves when the next piece of a request that holds this text has gone to the server. */
  nextRequest(text: string): Promise<void>;
  /** Resets all connections and refuses new ones: the machine is gone. */
  die(): Promise<void>;
}

/** Shorter pieces are heads and small answers, which do not break off. In bytes. */
const SHORTEST_CUT = 1_000;

/** Close it by `die`. */
export async function openTcpProxy(target: URL): Promise<TcpProxy> {
  let cuts = 0;
  let delay = 0;
  let asked: { readonly text: string; readonly tell: () => void }[] = [];
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
    client.on("data", (piece: Buffer) => {
      const seen = asked.filter(({ text }) => piece.includes(text));
      asked = asked.filter((one) => !seen.includes(one));
      for (const { tell } of seen) tell();
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
    nextRequest: (text) => new Promise((tell) => asked.push({ text, tell })),
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
