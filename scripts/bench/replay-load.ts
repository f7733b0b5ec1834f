import { connect, type Socket } from "node:net";

/** Where requests go. */
export interface Target {
  readonly port: number;
  readonly path: string;
  readonly token: string;
}

/** Requests as raw bytes, made beforehand: a client library would take more time than the servers that are measured. */
export function requestsOf({ path, token }: Target, bodies: readonly string[]): Buffer[] {
  return bodies.map((body) => {
    const head = [
      `POST ${path} HTTP/1.1`,
      "host: localhost",
      "content-type: application/json",
      `authorization: Bearer ${token}`,
      `content-length: ${Buffer.byteLength(body)}`,
    ];
    return Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`, "utf8");
  });
}

export interface Flood {
  /** Answered with 200. */
  readonly requests: number;
  /** Answered with anything else, the first of them. */
  readonly failures: readonly string[];
  readonly seconds: number;
}

/**
 * Sends the requests over keep-alive connections, each connection its next one as soon as it has its answer (closed
 * loop), until all are answered or, after `maxMs`, those under way are.
 */
export async function flood(
  port: number,
  requests: readonly Buffer[],
  connections: number,
  maxMs: number,
): Promise<Flood> {
  const opened = await Promise.all(Array.from({ length: connections }, () => openConnection(port)));
  let next = 0;
  const failures: string[] = [];
  const start = performance.now();
  const run = async (connection: Connection): Promise<void> => {
    for (;;) {
      const request = performance.now() - start < maxMs ? requests[next] : undefined;
      if (request === undefined) return;
      next++;
      const failure = await connection.ask(request);
      if (failure !== undefined) failures.push(failure);
    }
  };
  await Promise.all(opened.map(run));
  const seconds = (performance.now() - start) / 1000;
  for (const connection of opened) connection.close();
  return { requests: next - failures.length, failures, seconds };
}

export interface Paced {
  /** Milliseconds from when a request was due to the end of its answer. */
  readonly latencies: readonly number[];
  /** Milliseconds by which the generator itself sent too late; part of the latencies. */
  readonly lateness: readonly number[];
  /** Answered with anything but 200; their times are not among the latencies. */
  readonly failures: readonly string[];
}

/** At most so many requests under way; more wait, and their wait counts. */
const MOST_CONNECTIONS = 256;

/**
 * Sends a request every 1/`perSecond` seconds whether or not those before it are answered (open loop). Times count from
 * when a request was due, so that a server that stalls pays for all that had to wait (no coordinated omission).
 */
export async function paced(port: number, requests: readonly Buffer[], perSecond: number): Promise<Paced> {
  const idle = await Promise.all(Array.from({ length: 4 }, () => openConnection(port)));
  const all = [...idle];
  const [latencies, lateness, failures]: [number[], number[], string[]] = [[], [], []];
  const waiting: (() => void)[] = [];
  const acquire = async (): Promise<Connection> => {
    const free = idle.pop();
    if (free !== undefined) return free;
    if (all.length < MOST_CONNECTIONS) {
      const connection = await openConnection(port);
      all.push(connection);
      return connection;
    }
    await new Promise<void>((resolve) => waiting.push(resolve));
    return acquire();
  };
  const send = async (request: Buffer, due: number): Promise<void> => {
    lateness.push(performance.now() - due);
    const connection = await acquire();
    const failure = await connection.ask(request);
    if (failure === undefined) latencies.push(performance.now() - due);
    else failures.push(failure);
    idle.push(connection);
    waiting.shift()?.();
  };
  const start = performance.now() + 20;
  const sent: Promise<void>[] = [];
  for (const [position, request] of requests.entries()) {
    const due = start + (position * 1000) / perSecond;
    await until(due);
    sent.push(send(request, due));
  }
  await Promise.all(sent);
  for (const connection of all) connection.close();
  return { latencies, lateness, failures };
}

/** Sleeps, and spins through the last two milliseconds: timers are that coarse. */
async function until(due: number): Promise<void> {
  const left = due - performance.now();
  if (left > 3) await new Promise((resolve) => setTimeout(resolve, left - 2));
  while (performance.now() < due) await new Promise(setImmediate);
}

interface Connection {
  /** Resolves when the whole answer is there. @returns the answer's beginning where its status is not 200 */
  ask(request: Buffer): Promise<string | undefined>;
  close(): void;
}

/** No server that is measured takes that long; one that does is stuck. */
const ANSWER_LIMIT_MS = 60_000;

const LAST_CHUNK = "0\r\n\r\n";

async function openConnection(port: number): Promise<Connection> {
  const socket = await new Promise<Socket>((resolve, reject) => {
    const opening = connect({ port, host: "127.0.0.1", noDelay: true }, () => resolve(opening));
    opening.once("error", reject);
  });
  let settle: { resolve(failure: string | undefined): void; reject(error: Error): void } | undefined;
  /** Bytes of the body still to come; `chunked` where its end is a mark; undefined before the head is there. */
  let left: number | "chunked" | undefined;
  let held = "";
  let failure: string | undefined;
  const fail = (error: Error): void => settle?.reject(error);
  socket.on("error", fail);
  socket.setTimeout(ANSWER_LIMIT_MS, () => fail(new Error(`no answer within ${ANSWER_LIMIT_MS} ms; so far: ${held}`)));
  socket.on("close", () => fail(new Error("the server closed the connection")));
  socket.on("data", (part) => {
    let body = part.length;
    if (left === undefined) {
      held += part.toString("latin1");
      const headEnd = held.indexOf("\r\n\r\n");
      if (headEnd < 0) return;
      failure = held.startsWith("HTTP/1.1 200") ? undefined : held.slice(0, 1000);
      const length = /\r\ncontent-length: (\d+)/iu.exec(held.slice(0, headEnd))?.[1];
      left = length === undefined ? "chunked" : Number(length);
      body = held.length - headEnd - 4;
    } else if (left === "chunked") held = held.slice(-LAST_CHUNK.length) + part.toString("latin1");
    if (left !== "chunked") left -= body;
    if (left === "chunked" ? !held.endsWith(LAST_CHUNK) : left > 0) return;
    [left, held] = [undefined, ""];
    settle?.resolve(failure);
  });
  return {
    ask: (request) =>
      new Promise((resolve, reject) => {
        settle = { resolve, reject };
        socket.write(request);
      }),
    close() {
      settle = undefined;
      socket.destroy();
    },
  };
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** The mean of the middle two where their number is even. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  const upper = sorted[half] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[half - 1] ?? Number.NaN)) / 2;
}
