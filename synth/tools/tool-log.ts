import type { CallStamp, Ending, TapeClock } from "../proxy/call-log.ts";
import { rewriteChunks } from "../proxy/rewrite-chunks.ts";
import type { StoredToolExchange } from "../tape/folder-schema.ts";
import { keptRequestHeaders, keptResponseHeaders, type Redactor } from "../tape/redact.ts";
import type { TapeWriter } from "../tape/writer.ts";
import { questionOf, toolKey } from "./tool-key.ts";
import type { ToolRequest } from "./tool-request.ts";

export interface OpenToolExchange extends CallStamp {
  readonly request: ToolRequest;
}

/** Counts exchanges with tools among the calls of models and, with a writer, puts them on tape as they end. */
export interface ToolLog {
  begin(request: ToolRequest): OpenToolExchange;
  /** Before the client has all of the answer: what it has seen is on tape. */
  end(open: OpenToolExchange, ending: Omit<Ending, "from"> & { readonly from: StoredToolExchange["from"] }): void;
  readonly exchanges: number;
}

export interface ToolLogOptions {
  readonly writer?: TapeWriter | undefined;
  readonly redact: Redactor;
  readonly clock: TapeClock;
}

export function createToolLog({ writer, redact, clock }: ToolLogOptions): ToolLog {
  let exchanges = 0;
  return {
    begin(request) {
      exchanges++;
      return { request, ...clock.stamp() };
    },
    end(open, ending) {
      if (writer === undefined) return;
      const { request, index, askedAt } = open;
      const question = questionOf(request, redact);
      const chunks = rewriteChunks(ending.chunks, redact);
      writer.tool({
        type: "tool",
        index,
        tool: request.tool,
        ...(request.agent === undefined ? {} : { agent: request.agent }),
        ...(question.session === undefined ? {} : { session: question.session }),
        from: ending.from,
        askedAt,
        tookMs: clock.since(open),
        request: {
          method: question.method,
          path: question.path,
          ...(question.query === "" ? {} : { query: question.query }),
          headers: {
            ...keptRequestHeaders(request.headers, redact),
            ...protocolVersion(request),
          },
          body: writer.body(question.body),
          key: toolKey(question),
        },
        response: {
          outcome: ending.outcome,
          status: ending.status,
          headers: keptResponseHeaders(ending.headers, redact),
          body: writer.body(Buffer.concat(chunks)),
          ...(chunks.length > 1 ? { chunks: chunks.map(({ length }) => length) } : {}),
        },
      });
    },
    get exchanges() {
      return exchanges;
    },
  };
}

/** A handshake is sent again as it was. */
function protocolVersion({ headers }: ToolRequest): Record<string, string> {
  const version = headers["mcp-protocol-version"];
  return typeof version === "string" ? { "mcp-protocol-version": version } : {};
}
