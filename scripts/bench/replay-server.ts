/** The servers that the replay benchmark measures, each in a process of its own: bare, replay or record. */
import { createServer, type ServerResponse } from "node:http";
import { createCallLog } from "../../synth/proxy/call-log.ts";
import { recordHandler } from "../../synth/proxy/live.ts";
import { replayHandler } from "../../synth/proxy/replay-handler.ts";
import { serveProxy } from "../../synth/proxy/server.ts";
import { recordingsOf } from "../../synth/proxy/tape-recordings.ts";
import { createUpstream } from "../../synth/proxy/upstream.ts";
import { loadTape } from "../../synth/tape/loader.ts";
import { createRedactor } from "../../synth/tape/redact.ts";
import { createTapeWriter } from "../../synth/tape/writer.ts";
import { answerTo, benchHeader, RUN, STREAM_PIECES, streamPiece, TOKEN } from "./replay-tape.ts";

const [, , kind = "", argument = "", upstreamUrl = ""] = process.argv;

/** Requests that the bare server answered. */
let served = 0;

/** Answers as a model server does, and does nothing but parse the body. */
async function bare(): Promise<number> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      if (request.method !== "POST") return void response.writeHead(404).end(); // LiteLLM looks for a list of models
      served++;
      if (request.headers["x-bench-close"] !== undefined) response.shouldKeepAlive = false;
      const body: { messages: { content: string }[]; stream?: boolean; model?: string } = JSON.parse(
        Buffer.concat(parts).toString("utf8"),
      );
      if (body.stream === true) return stream(response);
      const answer = answerTo(body.messages.at(-1)?.content ?? "");
      const status = body.model === "busy" ? 429 : 200;
      response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(answer) });
      response.end(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** For the checks of behaviour, not for the load: a stream in pieces that are some milliseconds apart. */
function stream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  let sent = 0;
  const next = (): void => {
    if (sent === STREAM_PIECES) return void response.end("data: [DONE]\n\n");
    response.write(streamPiece(sent++));
    setTimeout(next, 20);
  };
  next();
}

async function replaying(): Promise<number> {
  const [start, before] = [performance.now(), process.cpuUsage()];
  const recordings = recordingsOf(loadTape(argument));
  const redact = createRedactor([TOKEN]);
  const log = createCallLog({ redact, now: () => performance.now() });
  const { handle } = replayHandler({ recordings, redact, log });
  const { user, system } = process.cpuUsage(before);
  process.send?.({ loadMs: performance.now() - start, loadCpuMs: (user + system) / 1000 });
  const proxy = await serveProxy({ run: RUN, token: TOKEN, handler: handle });
  return Number(new URL(proxy.baseUrl).port);
}

async function recording(): Promise<number> {
  const redact = createRedactor([TOKEN]);
  const writer = createTapeWriter(argument, benchHeader);
  const log = createCallLog({ writer, redact, now: () => performance.now() });
  const handler = recordHandler(createUpstream({ base: new URL(upstreamUrl) }), log);
  const proxy = await serveProxy({ run: RUN, token: TOKEN, handler });
  return Number(new URL(proxy.baseUrl).port);
}

process.on("message", (message) => {
  if (message === "collect") globalThis.gc?.();
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  process.send?.({ cpuMicros: user + system, rssBytes: rss, heapBytes: heapUsed, served });
});
process.on("disconnect", () => process.exit()); // never outlives the benchmark
const port = await (kind === "bare" ? bare() : kind === "replay" ? replaying() : recording());
process.send?.({ port });
