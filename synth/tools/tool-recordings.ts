import { cutInto, type ProxyRecording } from "../proxy/tape-recordings.ts";
import type { StoredToolExchange } from "../tape/folder-schema.ts";
import type { TapeFolder } from "../tape/loader.ts";
import type { Recording } from "../tape/matcher.ts";
import { parsed, rpcMessages } from "./json-rpc.ts";
import { rawKey, storedQuestion, toolLane, toolText } from "./tool-key.ts";
import { isListening, SESSION_HEADER } from "./tool-request.ts";

/** A recorded exchange with a tool that a replay can answer with. */
export interface ToolRecording extends Recording {
  readonly exchange: StoredToolExchange;
  body(): Buffer;
  /** The answer's pieces as they came. */
  chunks(): readonly Buffer[];
}

export interface ToolRecordings {
  /** In the order they were asked, numbered from 0. */
  readonly exchanges: readonly ToolRecording[];
  /** Standing streams of MCP, which come and go at any time. */
  readonly listens: readonly ToolRecording[];
  /** Stand-ins of the sessions on tape. */
  readonly sessions: ReadonlySet<string>;
}

/** Failures of a tool are what the program saw and acted on: unlike those of a model server they are kept, and nothing is folded. */
export function toolRecordingsOf(tape: TapeFolder): ToolRecordings {
  const recordingOf = (exchange: StoredToolExchange, index: number): ToolRecording => {
    const body = (): Buffer => Buffer.from(tape.bodies.get(exchange.request.body));
    return {
      index,
      lane: toolLane(exchange.tool, exchange.agent),
      raw: rawKey(storedQuestion(exchange, Buffer.alloc(0)), exchange.request.body),
      key: exchange.request.key,
      text: () => toolText(storedQuestion(exchange, body())),
      exchange,
      body,
      chunks: () => cutInto(tape.bodies.get(exchange.response.body), exchange.response.chunks),
    };
  };
  const ordered = [...tape.tools].sort((a, b) => a.index - b.index);
  const isListen = ({ request, session }: StoredToolExchange): boolean =>
    isListening({
      method: request.method,
      headers: { ...request.headers, ...(session === undefined ? {} : { [SESSION_HEADER]: session }) },
    });
  return {
    exchanges: ordered.filter((exchange) => !isListen(exchange)).map(recordingOf),
    listens: ordered.filter(isListen).map(recordingOf),
    sessions: new Set(ordered.flatMap(sessionsIn)),
  };
}

function sessionsIn({ session, response }: StoredToolExchange): string[] {
  return [session, response.headers[SESSION_HEADER]].filter((standIn) => standIn !== undefined);
}

/**
 * The exchanges with tools that belong before a cut: those asked before the first call that is not from the tape was
 * answered. Nothing that this call set off is among them, and everything that an earlier call set off is.
 */
export function toolsBefore(
  exchanges: readonly ToolRecording[],
  calls: readonly ProxyRecording[],
  isFromTape: (call: number) => boolean,
): ReadonlySet<number> {
  let answered = Number.POSITIVE_INFINITY;
  for (const { index, call } of calls) {
    if (!isFromTape(index)) answered = Math.min(answered, call.askedAt + call.tookMs);
  }
  return new Set(exchanges.filter(({ exchange }) => exchange.askedAt < answered).map(({ index }) => index));
}

/** The requests by which a session of MCP over HTTP began, in order; empty where the tape does not hold them. */
export function handshakeOf(exchanges: readonly ToolRecording[], standIn: string): readonly ToolRecording[] {
  const methodsOf = (recording: ToolRecording): unknown[] =>
    rpcMessages(parsed(recording.body().toString("utf8"))).map(({ method }) => method);
  const began = exchanges.find(
    (recording) =>
      recording.exchange.response.headers[SESSION_HEADER] === standIn && methodsOf(recording).includes("initialize"),
  );
  if (began === undefined) return [];
  const told = exchanges.find(
    (recording) => recording.exchange.session === standIn && methodsOf(recording).includes("notifications/initialized"),
  );
  return told === undefined ? [began] : [began, told];
}
