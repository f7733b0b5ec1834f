import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { asRootstepError } from "../../src/errors.ts";
import { isRecord } from "../../src/is-record.ts";
import { isRpcAnswer, isRpcRequest, parsed, type RpcMessage, rpcMessages } from "./json-rpc.ts";
import { type McpServer, readLines, startMcpServer } from "./mcp-server.ts";
import { type StdioProxy, stdioProxy } from "./stdio-proxy.ts";
import type { StdioDecision, StdioDone } from "./stdio-wire.ts";

export interface McpTapeOptions {
  /** The name under which the traffic stands on tape. */
  readonly tool: string;
  /** The real server. */
  readonly command: readonly string[];
  /** Where the proxy of the run serves its tools. */
  readonly toolsUrl: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly input: Readable;
  readonly output: Writable;
  /** A remark for people; standard output is the protocol's. */
  readonly note: (line: string) => void;
}

/** A line of the client that the real server is answering. */
interface OpenLine {
  readonly exchange: number;
  readonly message: RpcMessage;
  readonly lines: string[];
}

/** What every client and server of MCP says first. */
const HANDSHAKE = new Set<unknown>(["initialize", "notifications/initialized"]);
const HANDSHAKE_ID = "rootstep-handshake";
/**
 * Between two recorded lines of one answer, in milliseconds. A client that reads a notification and the answer after it in
 * one go may drop the notification (the official TypeScript client does so with progress).
 */
const BETWEEN_LINES_MS = 20;
/** JSON-RPC leaves -32000 to -32099 to servers. */
const REFUSED = -32_000;

/**
 * Stands in the place of an MCP server over stdio: the client's lines are answered by the real server while recording and
 * after a cut, from the tape before it. The real server is started when it is first needed, and is then told what the
 * client had said to its recording to begin with.
 *
 * @returns the exit code: the real server's, 0 where it was not needed
 */
export async function runMcpTape(options: McpTapeOptions): Promise<number> {
  const { input, output, note } = options;
  const proxy = stdioProxy(options.toolsUrl, options.tool);
  const client = clientOf(output);
  const live = liveServer(options, proxy, client.write);
  /** Requests of a recorded server that the client has yet to answer. */
  const awaited = new Map<unknown, () => void>();

  /** Writes recorded lines; after a request of the server's own, not before the client has answered it. */
  const writeRecorded = async (lines: readonly string[]): Promise<void> => {
    for (const [position, line] of lines.entries()) {
      if (position > 0) await sleep(BETWEEN_LINES_MS);
      client.write(line);
      const asking = rpcMessages(parsed(line)).find(isRpcRequest);
      if (asking !== undefined) await new Promise<void>((resolve) => awaited.set(asking.id, resolve));
    }
  };

  const carryOut = async (decision: StdioDecision, line: string, message: RpcMessage): Promise<void> => {
    if ("error" in decision) {
      note(`${decision.error.code}: ${decision.error.message}`);
      const error = { code: REFUSED, message: decision.error.message };
      if (isRpcRequest(message)) client.write(JSON.stringify({ jsonrpc: "2.0", id: message.id, error }));
    } else if (decision.from === "tape") {
      live.remember(line, message);
      if (isRpcAnswer(message)) awaited.get(message.id)?.();
      void writeRecorded(decision.lines).then(() => {
        if (decision.isCut === true) input.destroy(); // the recorded server ended here, and its client saw it
      });
    } else if (decision.from === "live") await live.ask(line, { exchange: decision.exchange, message, lines: [] });
  };

  const handle = async (line: string): Promise<void> => {
    const [message = {}] = rpcMessages(parsed(line));
    const { first, later } = await proxy.ask(line);
    if (later === undefined) return carryOut(first, line, message);
    // It waits for calls of others: lines behind it may be those.
    later.then((decision) => carryOut(decision, line, message)).catch(fail);
  };

  let failed: unknown;
  const fail = (error: unknown): void => {
    failed ??= error;
    input.destroy();
  };
  let lines = Promise.resolve(); // in order: a server must not get the second line first
  readLines(input, (line) => {
    lines = lines.then(() => (failed === undefined ? handle(line).catch(fail) : undefined));
  });
  live.onEnd(() => input.destroy());
  await once(input, "close");
  await lines;
  const code = await live.stop();
  if (failed === undefined) return code;
  note(asRootstepError(failed).message);
  return 1;
}

function clientOf(output: Writable) {
  output.on("error", () => {}); // the client has gone
  return { write: (line: string): void => void output.write(`${line}\n`) };
}

/** The real server, from when it is first asked; tells the proxy what came of each line before the client sees it. */
function liveServer(options: McpTapeOptions, proxy: StdioProxy, write: (line: string) => void) {
  const open: OpenLine[] = [];
  const handshake: { readonly line: string; readonly message: RpcMessage }[] = [];
  const unasked: string[] = [];
  let server: McpServer | undefined;
  let starting: Promise<McpServer> | undefined;
  let greeted: () => void = () => {};
  let ended: () => void = () => {};
  let told = Promise.resolve();

  const tell = (line: OpenLine, outcome: StdioDone["outcome"]): Promise<void> => {
    const at = open.indexOf(line);
    if (at >= 0) open.splice(at, 1);
    return proxy.done({ exchange: line.exchange, outcome, lines: line.lines });
  };

  /** Which of the client's lines a line of the server belongs to: by id, by progress token, else the oldest. */
  const ownerOf = (message: RpcMessage): OpenLine | undefined => {
    if (isRpcAnswer(message)) return open.find((line) => line.message.id === message.id);
    const token = isRecord(message.params) ? message.params.progressToken : undefined;
    return (token === undefined ? undefined : open.find((line) => tokenOf(line.message) === token)) ?? open[0];
  };

  const onLine = (line: string): void => {
    const [message = {}] = rpcMessages(parsed(line));
    if (message.id === HANDSHAKE_ID) {
      greeted();
      return;
    }
    const owner = ownerOf(message);
    // What a server says unasked is put before its next answer.
    if (owner === undefined) unasked.push(line);
    else owner.lines.push(line);
    const isLast = owner !== undefined && isRpcAnswer(message);
    told = told.then(() => (isLast ? tell(owner, "complete") : undefined)).then(() => write(line), ended);
  };

  const start = async (): Promise<McpServer> => {
    const started = startMcpServer({ ...options, onLine });
    server = started;
    started.ended.finally(() => ended()).catch(() => {});
    for (const { line, message } of handshake) {
      if (!isRpcRequest(message)) started.send(line);
      else {
        const answered = new Promise<void>((resolve) => {
          greeted = resolve;
        });
        started.send(JSON.stringify({ ...message, id: HANDSHAKE_ID }));
        await Promise.race([answered, started.ended]);
      }
    }
    return started;
  };

  return {
    /** Lines that the tape answered and a real server has to hear. */
    remember(line: string, message: RpcMessage) {
      if (HANDSHAKE.has(message.method)) handshake.push({ line, message });
    },
    async ask(line: string, asked: OpenLine) {
      starting ??= start();
      const started = await starting;
      asked.lines.push(...unasked.splice(0));
      open.push(asked);
      started.send(line);
      if (!isRpcRequest(asked.message)) await tell(asked, "complete"); // nothing comes back
    },
    onEnd(then: () => void) {
      ended = then;
    },
    async stop(): Promise<number> {
      if (server === undefined) return 0;
      const code = await server.stop();
      await told;
      for (const line of [...open]) await tell(line, "cut");
      return code ?? 1;
    },
  };
}

function tokenOf({ params }: RpcMessage): unknown {
  return isRecord(params) && isRecord(params._meta) ? params._meta.progressToken : undefined;
}
