import type { ServerResponse } from "node:http";
import { asRootstepError, RootstepError } from "../../src/errors.ts";
import type { AnswerPieces, AnswerPort } from "../proxy/answer-port.ts";
import { sendError } from "../proxy/error-answer.ts";
import { httpPort } from "../proxy/http-port.ts";
import { rewriteChunks } from "../proxy/rewrite-chunks.ts";
import { createTurns, type FromTape } from "../proxy/turns.ts";
import type { MatchLevel, MatchOptions } from "../tape/matcher.ts";
import type { SharedPrefix } from "../tape/prefix.ts";
import type { Redactor } from "../tape/redact.ts";
import { createReplay } from "../tape/replay.ts";
import { openSession } from "./handshake.ts";
import { pairRpcIds, parsed, withRpcIds } from "./json-rpc.ts";
import { askTool, type ToolServers } from "./live-tool.ts";
import { createToolSessions } from "./sessions.ts";
import { createStdioExchanges, linesOf, stdioAnswer } from "./stdio-exchanges.ts";
import { type ToolFront, toolRouter, unknownTool } from "./tool-front.ts";
import { askedOfTool, questionOf, toolLane } from "./tool-key.ts";
import type { ToolLog } from "./tool-log.ts";
import { handshakeOf, type ToolRecording, type ToolRecordings } from "./tool-recordings.ts";
import { isListening, sessionOf, type ToolRequest } from "./tool-request.ts";

export interface ReplayToolsOptions extends MatchOptions {
  readonly recordings: ToolRecordings;
  readonly redact: Redactor;
  readonly log: ToolLog;
  /** Shared with the replay of the calls of models. */
  readonly shared: SharedPrefix;
  /** The exchanges from the tape; absent: all, and nothing is ever live. */
  readonly prefix?: ReadonlySet<number> | undefined;
  /** Answer after the cut. */
  readonly servers: ToolServers;
  /** The run's. */
  readonly token: string;
  readonly holdMs?: number | undefined;
}

export interface ToolReplay extends ToolFront {
  /** Exchanges from the tape by how they matched. */
  readonly levels: Readonly<Record<MatchLevel, number>>;
  readonly liveExchanges: number;
  /** Exchanges before the cut that the program did not ask for. */
  readonly unplayed: number;
}

const NOTHING: AnswerPieces = { outcome: "complete", status: 204, headers: {}, chunks: [] };

/** The tools of a replay: the tape before the cut, the tool itself after it, an error for anything else. */
export function replayTools(options: ReplayToolsOptions): ToolReplay {
  const { recordings, redact, log, shared, prefix, servers, token } = options;
  const replay = createReplay(recordings.exchanges, {
    shared,
    masks: options.masks,
    idPatterns: options.idPatterns,
    similarityFloor: options.similarityFloor,
    // `at` plays no part beside the prefix: no action stands in the place of a tool's answer.
    cut: prefix === undefined ? undefined : { at: 0, action: false, prefix },
  });
  const take = createTurns({ replay, shared, holdMs: options.holdMs });
  const sessions = createToolSessions(recordings.sessions);
  const stdio = createStdioExchanges(log);
  const listens = [...recordings.listens];
  let liveExchanges = 0;

  const askedBy = (request: ToolRequest) =>
    askedOfTool(questionOf(request, redact), toolLane(request.tool, request.agent));

  /** The recorded answer with this run's ids. */
  const answerOf = (recording: ToolRecording, request: ToolRequest): readonly Buffer[] => {
    const pairs = pairRpcIds(parsed(recording.body().toString("utf8")), parsed(request.body.toString("utf8")));
    const bound = replay.rewriter();
    let chunks = recording.chunks();
    if (bound !== undefined) chunks = rewriteChunks(chunks, bound);
    if (pairs === undefined || chunks.length === 0) return chunks;
    return [Buffer.from(withRpcIds(Buffer.concat([...chunks]).toString("utf8"), pairs), "utf8")];
  };

  const http = (request: ToolRequest, response: ServerResponse): void => {
    const port = httpPort(response);
    if (isListening(request)) {
      listen(request, port);
      return;
    }
    const tape = ({ recording, level }: FromTape<ToolRecording>): void => {
      const { outcome, status, headers } = recording.exchange.response;
      port.onceClosed((hadAll) => {
        if (!hadAll && outcome === "complete" && shared.stopped === undefined) replay.giveBack(recording, level);
      });
      fromTape(recording, request, port, { outcome, status, headers });
    };
    take({ asked: askedBy(request), port, tape, live: () => live(request, port) });
  };

  const fromTape = (
    recording: ToolRecording,
    request: ToolRequest,
    port: AnswerPort,
    head: Pick<ToolRecording["exchange"]["response"], "outcome" | "status" | "headers">,
  ): void => {
    const chunks = answerOf(recording, request);
    log.end(log.begin(request), { ...head, chunks, from: "tape" });
    if (head.outcome !== "unreachable") port.replay({ ...head, chunks });
    else {
      const what = `the tool ${request.tool} could not be reached when this was recorded`;
      port.unreachable(head.status, new RootstepError("TOOL_UNREACHABLE", { what }));
    }
  };

  /** Streams that clients open beside their requests: as recorded, else none, which a client of MCP must bear. */
  const listen = (request: ToolRequest, port: AnswerPort): void => {
    const standIn = sessionOf(request);
    if (standIn !== undefined && sessions.realOf(standIn) !== undefined && servers.get(request.tool) !== undefined) {
      live(request, port);
      return;
    }
    const lane = toolLane(request.tool, request.agent);
    const at = listens.findIndex((recording) => recording.lane === lane && recording.exchange.session === standIn);
    const [recording] = at < 0 ? [] : listens.splice(at, 1);
    if (recording === undefined) port.refuse(405, "NOT_ON_TAPE", "the tape holds no such stream");
    else fromTape(recording, request, port, recording.exchange.response);
  };

  const live = (request: ToolRequest, port: AnswerPort): void => {
    const server = servers.get(request.tool);
    if (server === undefined) {
      const what = `the run went past its cut: ${unknownTool(request.tool, Object.keys(servers.shown))}`;
      throw new RootstepError("USAGE", { what, hint: "Give --tool NAME=URL." });
    }
    const open = log.begin(request);
    const send = (): void => {
      liveExchanges++;
      const ended: Parameters<typeof askTool>[2]["ended"] = (ending) => log.end(open, { ...ending, from: "live" });
      askTool(request, port, { server, sessions, token, ended });
    };
    const standIn = sessionOf(request);
    const isKnown = standIn === undefined || sessions.realOf(standIn) !== undefined;
    const handshake = isKnown ? [] : handshakeOf(recordings.exchanges, standIn);
    if (standIn === undefined || handshake.length === 0) {
      send(); // a session that nobody began is the server's to refuse
      return;
    }
    if (request.method === "DELETE") {
      // The session was on the tape only: there is nothing to end.
      log.end(open, { ...NOTHING, from: "live" });
      port.replay(NOTHING);
      return;
    }
    openSession(handshake, request, { server, sessions, token, standIn }).then(
      () => {
        if (!port.isGone) send();
      },
      (error: unknown) => {
        log.end(open, { ...NOTHING, outcome: "unreachable", status: 502, from: "live" });
        port.unreachable(502, asRootstepError(error));
      },
    );
  };

  const line = (request: ToolRequest, response: ServerResponse): void => {
    const { port, send, heldUnlessSent } = stdioAnswer(response);
    take({
      asked: askedBy(request),
      port,
      tape({ recording }) {
        const { outcome, status, headers } = recording.exchange.response;
        const chunks = answerOf(recording, request);
        log.end(log.begin(request), { outcome, status, headers, chunks, from: "tape" });
        const lines = linesOf(Buffer.concat([...chunks]).toString("utf8"));
        send({ from: "tape", lines, ...(outcome === "cut" ? { isCut: true } : {}) });
      },
      live() {
        liveExchanges++;
        send({ from: "live", exchange: stdio.begin(log.begin(request)) });
      },
    });
    heldUnlessSent();
  };

  return {
    handle: toolRouter({
      http(request, response) {
        try {
          http(request, response);
        } catch (thrown) {
          if (!(thrown instanceof RootstepError)) throw thrown;
          sendError(response, 400, thrown.code, thrown.message);
        }
      },
      line,
      lineDone: stdio.done,
    }),
    close: stdio.close,
    levels: replay.levels,
    get liveExchanges() {
      return liveExchanges;
    },
    get unplayed() {
      return replay.unplayed;
    },
  };
}
