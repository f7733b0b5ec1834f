import type { ServerResponse } from "node:http";
import { STDIO_HEADER, STDIO_METHOD } from "./stdio-wire.ts";
import type { ToolRequest } from "./tool-request.ts";

/** What answers for the tools of a run. */
export interface ToolFront {
  handle(request: ToolRequest, response: ServerResponse): void;
  /** When the program has ended and before its tape does. */
  close(): void;
}

export interface ToolRoutes {
  http(request: ToolRequest, response: ServerResponse): void;
  /** A line of MCP over stdio; its method is STDIO. */
  line(request: ToolRequest, response: ServerResponse): void;
  /** The wrapper tells how a live line ended. */
  lineDone(body: Buffer, response: ServerResponse): void;
}

/** Parts requests of the wrapper for stdio from those of the program. */
export function toolRouter({ http, line, lineDone }: ToolRoutes): ToolFront["handle"] {
  return (request, response) => {
    switch (request.headers[STDIO_HEADER]) {
      case undefined:
        http(request, response);
        break;
      case "done":
        lineDone(request.body, response);
        break;
      default:
        line({ ...request, method: STDIO_METHOD, path: "", query: "", headers: {} }, response);
    }
  };
}

/** Why a program's request to a tool has no address to go to. */
export function unknownTool(tool: string, known: readonly string[]): string {
  const which = known.length === 0 ? "none" : known.join(", ");
  return `this run has no address for a tool ${tool} (it has: ${which}); give it with --tool ${tool}=URL`;
}
