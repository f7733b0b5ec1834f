import { Secret } from "../../src/models/key.ts";
import { createCallLog, createTapeClock } from "../../synth/proxy/call-log.ts";
import { isBefore, type ProxyCut } from "../../synth/proxy/cut.ts";
import { recordHandler } from "../../synth/proxy/live.ts";
import { type ReplayHandler, replayHandler } from "../../synth/proxy/replay-handler.ts";
import { runRedactor } from "../../synth/proxy/run-redactor.ts";
import { type RunningProxy, serveProxy } from "../../synth/proxy/server.ts";
import { recordingsOf } from "../../synth/proxy/tape-recordings.ts";
import { createUpstream } from "../../synth/proxy/upstream.ts";
import { loadTape, type TapeFolder } from "../../synth/tape/loader.ts";
import { createSharedPrefix } from "../../synth/tape/prefix.ts";
import { createTapeWriter } from "../../synth/tape/writer.ts";
import { openToolServers } from "../../synth/tools/live-tool.ts";
import { recordTools } from "../../synth/tools/record-tools.ts";
import { replayTools, type ToolReplay } from "../../synth/tools/replay-tools.ts";
import { createToolLog } from "../../synth/tools/tool-log.ts";
import { toolRecordingsOf, toolsBefore } from "../../synth/tools/tool-recordings.ts";
import { freshFolder, TOKEN, tapeHeader, UPSTREAM_KEY } from "./proxy-setting.ts";

export type Addresses = Readonly<Record<string, string>>;

const serversOf = (tools: Addresses) =>
  openToolServers(new Map(Object.entries(tools).map(([name, url]) => [name, new URL(url)])));
const now = (): number => performance.now();

export interface ToolRecording {
  readonly folder: string;
  readonly proxy: RunningProxy;
  finish(): Promise<TapeFolder>;
}

/** A recording proxy before a model server and tools. */
export async function recordWithTools(
  upstreamUrl: string,
  tools: Addresses,
  env: Readonly<Record<string, string>> = {},
): Promise<ToolRecording> {
  const redact = runRedactor({ token: TOKEN, upstreamKey: new Secret(UPSTREAM_KEY), env });
  const folder = freshFolder("tape");
  const writer = createTapeWriter(folder, tapeHeader);
  const upstream = createUpstream({ base: new URL(upstreamUrl) });
  const servers = serversOf(tools);
  const clock = createTapeClock(now);
  const front = recordTools({ servers, log: createToolLog({ writer, redact, clock }), token: TOKEN });
  const handler = recordHandler(upstream, createCallLog({ writer, redact, clock }));
  const proxy = await serveProxy({ run: "test", token: TOKEN, handler, tools: front.handle });
  return {
    folder,
    proxy,
    async finish() {
      await proxy.close();
      front.close();
      writer.end({
        type: "end",
        calls: writer.calls,
        ...(writer.toolExchanges === 0 ? {} : { tools: writer.toolExchanges }),
        exitCode: 0,
        signal: null,
        timedOut: false,
        stdout: writer.body(Buffer.from("")),
      });
      writer.close();
      await upstream.close();
      await servers.close();
      return loadTape(folder);
    },
  };
}

export interface ReplayWithTools {
  readonly proxy: RunningProxy;
  readonly calls: ReplayHandler;
  readonly tools: ToolReplay;
  close(): Promise<void>;
}

export interface ReplayWithToolsOptions {
  readonly cut?: ProxyCut;
  readonly upstreamUrl?: string;
  readonly tools?: Addresses;
  readonly holdMs?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** A proxy that answers calls and tools from the tape. */
export async function replayWithTools(
  tape: TapeFolder,
  { cut, upstreamUrl, tools = {}, holdMs, env = {} }: ReplayWithToolsOptions = {},
): Promise<ReplayWithTools> {
  const redact = runRedactor({ token: TOKEN, env });
  const upstream = upstreamUrl === undefined ? undefined : createUpstream({ base: new URL(upstreamUrl) });
  const servers = serversOf(tools);
  const clock = createTapeClock(now);
  const shared = createSharedPrefix();
  const recordings = recordingsOf(tape);
  const toolRecordings = toolRecordingsOf(tape);
  const calls = replayHandler({
    recordings,
    redact,
    log: createCallLog({ redact, clock }),
    cut,
    upstream,
    shared,
    holdMs,
  });
  const replayed = replayTools({
    recordings: toolRecordings,
    redact,
    log: createToolLog({ redact, clock }),
    shared,
    prefix: cut === undefined ? undefined : toolsBefore(toolRecordings.exchanges, recordings.calls, isBefore(cut)),
    servers,
    token: TOKEN,
    holdMs,
  });
  const proxy = await serveProxy({ run: "test", token: TOKEN, handler: calls.handle, tools: replayed.handle });
  return {
    proxy,
    calls,
    tools: replayed,
    async close() {
      await proxy.close();
      replayed.close();
      await upstream?.close();
      await servers.close();
    },
  };
}
