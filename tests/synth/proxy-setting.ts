import { join } from "node:path";
import { Secret } from "../../src/models/key.ts";
import { createCallLog } from "../../synth/proxy/call-log.ts";
import { recordHandler } from "../../synth/proxy/live.ts";
import { type ReplayHandler, type ReplayHandlerOptions, replayHandler } from "../../synth/proxy/replay-handler.ts";
import { type RunningProxy, serveProxy } from "../../synth/proxy/server.ts";
import { recordingsOf } from "../../synth/proxy/tape-recordings.ts";
import { createUpstream, type Upstream, type UpstreamLimits } from "../../synth/proxy/upstream.ts";
import type { TapeHeader } from "../../synth/tape/folder-schema.ts";
import { loadTape, type TapeFolder } from "../../synth/tape/loader.ts";
import { createRedactor } from "../../synth/tape/redact.ts";
import { createTapeWriter, type TapeWriter } from "../../synth/tape/writer.ts";
import { temporaryFolder } from "../temporary-folder.ts";

export const TOKEN = "run-token-0123456789abcdef";
export const UPSTREAM_KEY = "upstream-key-fedcba9876543210";

export const freshFolder = (name: string): string => join(temporaryFolder("tape"), name);

export const tapeHeader: TapeHeader = {
  type: "tape",
  version: 1,
  rootstep: "0.0.0",
  run: "test",
  startedAt: "2025-01-01T00:00:00.000Z",
  upstream: "http://127.0.0.1:1/v1",
  command: ["program"],
  platform: {},
};

export interface TestRecording {
  readonly folder: string;
  readonly proxy: RunningProxy;
  readonly writer: TapeWriter;
  /** Ends the recording and opens its tape. */
  finish(): Promise<TapeFolder>;
}

/** A recording proxy before an upstream at that URL. */
export async function recordFrom(url: string, limits: Partial<UpstreamLimits> = {}): Promise<TestRecording> {
  const redact = createRedactor([TOKEN, UPSTREAM_KEY]);
  const folder = freshFolder("tape");
  const writer = createTapeWriter(folder, tapeHeader);
  const upstream = createUpstream({ base: new URL(url), key: new Secret(UPSTREAM_KEY), limits });
  const log = createCallLog({ writer, redact, now: () => performance.now() });
  const proxy = await serveProxy({ run: "test", token: TOKEN, handler: recordHandler(upstream, log) });
  return {
    folder,
    proxy,
    writer,
    async finish() {
      await proxy.close();
      writer.end({
        type: "end",
        calls: writer.calls,
        exitCode: 0,
        signal: null,
        timedOut: false,
        stdout: writer.body(Buffer.from("")),
      });
      writer.close();
      await upstream.close();
      return loadTape(folder);
    },
  };
}

export interface TestReplay extends ReplayHandler {
  readonly proxy: RunningProxy;
  close(): Promise<void>;
}

/** A proxy that answers from the tape. */
export async function replayOf(
  tape: TapeFolder,
  options: Partial<ReplayHandlerOptions> & { readonly upstreamUrl?: string } = {},
): Promise<TestReplay> {
  const redact = createRedactor([TOKEN]);
  const upstream: Upstream | undefined =
    options.upstreamUrl === undefined ? undefined : createUpstream({ base: new URL(options.upstreamUrl) });
  const handler = replayHandler({
    recordings: recordingsOf(tape),
    redact,
    log: createCallLog({ redact, now: () => performance.now() }),
    upstream,
    ...options,
  });
  const proxy = await serveProxy({ run: "test", token: TOKEN, handler: handler.handle });
  return Object.assign(handler, {
    proxy,
    async close() {
      await proxy.close();
      await upstream?.close();
    },
  });
}

export interface Seen {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly chunks: readonly string[];
}

/** What a client sees, with the pieces as they arrive. */
export async function ask(
  base: string,
  body: unknown,
  {
    path = "/chat/completions",
    key = TOKEN,
    headers = {},
    signal,
  }: { path?: string; key?: string; headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Seen> {
  const response = await fetch(`${base}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}`, ...headers },
    body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
  const chunks: string[] = [];
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) chunks.push(decoder.decode(chunk, { stream: true }));
  return { status: response.status, headers: response.headers, text: chunks.join(""), chunks };
}

/** `…/r/test/a/AGENT/v1` */
export const agentUrl = (proxy: RunningProxy, agent: string): string =>
  proxy.baseUrl.replace("/v1", `/a/${encodeURIComponent(agent)}/v1`);

export const chat = (content: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  model: "m",
  messages: [{ role: "user", content }],
  ...more,
});

export const completion = (content: string, more: Record<string, unknown> = {}): string =>
  JSON.stringify({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    ...more,
  });

export const contentOf = (seen: Seen): string => JSON.parse(seen.text).choices[0].message.content;
