/** The servers that `replay.ts` measures, each in a process of its own: bare, replay or record. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createCallLog } from "../../synth/proxy/call-log.ts";
import { recordHandler } from "../../synth/proxy/live.ts";
import { replayHandler } from "../../synth/proxy/replay-handler.ts";
import { serveProxy } from "../../synth/proxy/server.ts";
import { recordingsOf } from "../../synth/proxy/tape-recordings.ts";
import { createUpstream } from "../../synth/proxy/upstream.ts";
import { loadTape } from "../../synth/tape/loader.ts";
import { createRedactor } from "../../synth/tape/redact.ts";
import { createTapeWriter } from "../../synth/tape/writer.ts";
import { answerTo, benchHeader, RUN, TOKEN } from "./replay-tape.ts";

const [, , kind = "", argument = "", upstreamUrl = ""] = process.argv;

/** Answers as a model server does, and does nothing but parse the body. */
async function bare(): Promise<number> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body: { messages: { content: string }[] } = JSON.parse(Buffer.concat(parts).toString("utf8"));
      const answer = answerTo(body.messages.at(-1)?.content ?? "");
      response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(answer) });
      response.end(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return port;
}

async function replaying(): Promise<number> {
  const start = performance.now();
  const recordings = recordingsOf(loadTape(argument));
  const redact = createRedactor([TOKEN]);
  const log = createCallLog({ redact, now: () => performance.now() });
  const { handle } = replayHandler({ recordings, redact, log });
  const proxy = await serveProxy({ run: RUN, token: TOKEN, handler: handle });
  process.send?.({ loadMs: performance.now() - start });
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

process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpuMicros: user + system, rssBytes: process.memoryUsage().rss });
});
const port = await (kind === "bare" ? bare() : kind === "replay" ? replaying() : recording());
process.send?.({ port });
