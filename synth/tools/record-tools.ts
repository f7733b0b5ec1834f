import { sendError } from "../proxy/error-answer.ts";
import { httpPort } from "../proxy/http-port.ts";
import { askTool, type ToolServers } from "./live-tool.ts";
import { createToolSessions } from "./sessions.ts";
import { createStdioExchanges, stdioAnswer } from "./stdio-exchanges.ts";
import { type ToolFront, toolRouter, unknownTool } from "./tool-front.ts";
import type { ToolLog } from "./tool-log.ts";

export interface RecordToolsOptions {
  readonly servers: ToolServers;
  readonly log: ToolLog;
  /** The run's. */
  readonly token: string;
}

/** The tools of a recording: every request goes to its tool, the answer to the program and on the tape. */
export function recordTools({ servers, log, token }: RecordToolsOptions): ToolFront {
  const sessions = createToolSessions();
  const stdio = createStdioExchanges(log);
  return {
    handle: toolRouter({
      http(request, response) {
        const server = servers.get(request.tool);
        if (server === undefined) {
          sendError(response, 404, "NO_TOOL", unknownTool(request.tool, Object.keys(servers.shown)));
          return;
        }
        const open = log.begin(request);
        const ended: Parameters<typeof askTool>[2]["ended"] = (ending) => log.end(open, { ...ending, from: "live" });
        askTool(request, httpPort(response), { server, sessions, token, ended });
      },
      line: (request, response) =>
        stdioAnswer(response).send({ from: "live", exchange: stdio.begin(log.begin(request)) }),
      lineDone: stdio.done,
    }),
    close: stdio.close,
  };
}
