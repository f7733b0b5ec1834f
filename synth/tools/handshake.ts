import { RootstepError } from "../../src/errors.ts";
import type { HttpOrigin, OutgoingRequest } from "../proxy/upstream.ts";
import { outgoing, toolError } from "./live-tool.ts";
import type { ToolSessions } from "./sessions.ts";
import type { ToolRecording } from "./tool-recordings.ts";
import { SESSION_HEADER, type ToolRequest } from "./tool-request.ts";

export interface SessionToOpen {
  readonly server: HttpOrigin;
  readonly sessions: ToolSessions;
  /** The run's. */
  readonly token: string;
  readonly standIn: string;
}

/** Sessions being opened: requests that go live at once share one. */
const opening = new WeakMap<ToolSessions, Map<string, Promise<void>>>();

/**
 * Begins a session of MCP over HTTP that a replay has so far only had from its tape: the recorded handshake is sent to the
 * real server, whose session from then on stands behind the recorded name. What the recorded session had come to hold on
 * the server is not there.
 *
 * @param request the one that needs it: its keys open the session too
 * @throws RootstepError TOOL_UNREACHABLE, TOOL_TIMEOUT
 */
export function openSession(
  handshake: readonly ToolRecording[],
  request: ToolRequest,
  session: SessionToOpen,
): Promise<void> {
  const known = opening.get(session.sessions) ?? new Map<string, Promise<void>>();
  opening.set(session.sessions, known);
  const under = known.get(session.standIn) ?? shakeHands(handshake, request, session);
  known.set(session.standIn, under);
  return under;
}

async function shakeHands(
  handshake: readonly ToolRecording[],
  request: ToolRequest,
  { server, sessions, token, standIn }: SessionToOpen,
): Promise<void> {
  let real: string | undefined;
  for (const { exchange, body } of handshake) {
    const { method, path, query = "", headers } = exchange.request;
    const again: ToolRequest = {
      tool: request.tool,
      method,
      path,
      query,
      headers: { ...request.headers, ...headers },
      body: body(),
    };
    const answer = await exchangeOnce(server, outgoing(again, real, token), request.tool);
    if (answer.status >= 400) {
      const what = `the tool ${request.tool} refused the recorded handshake with HTTP ${answer.status}`;
      throw new RootstepError("TOOL_UNREACHABLE", { what, where: server.shown });
    }
    real ??= answer.session;
  }
  if (real === undefined) {
    const what = `the tool ${request.tool} gave no session where the recorded one did`;
    throw new RootstepError("TOOL_UNREACHABLE", { what, where: server.shown });
  }
  sessions.bind(request.tool, standIn, real);
}

/** Sends a request and reads its answer to the end. */
function exchangeOnce(
  server: HttpOrigin,
  request: OutgoingRequest,
  tool: string,
): Promise<{ readonly status: number; readonly session: string | undefined }> {
  return new Promise((resolve, reject) => {
    let status = 0;
    let session: string | undefined;
    server.send(request, {
      start(code, headers) {
        status = code;
        const given = headers[SESSION_HEADER];
        session = typeof given === "string" ? given : undefined;
      },
      piece: () => true,
      end: () => resolve({ status, session }),
      fail: (error) => reject(toolError(error, tool)),
    });
  });
}
