import type { ServerResponse } from "node:http";
import { sendError } from "../proxy/error-answer.ts";
import type { Turn } from "../proxy/turns.ts";
import { parsed } from "./json-rpc.ts";
import { type StdioDecision, stdioDoneSchema } from "./stdio-wire.ts";
import type { OpenToolExchange, ToolLog } from "./tool-log.ts";
import type { ToolRecording } from "./tool-recordings.ts";

/** Lines of stdio that real servers are answering, and what came of them. */
export interface StdioExchanges {
  /** @returns the number under which the wrapper will tell of it */
  begin(open: OpenToolExchange): number;
  /** The wrapper tells. */
  done(body: Buffer, response: ServerResponse): void;
  /** Puts what is still open on tape as aborted. */
  close(): void;
}

export function createStdioExchanges(log: ToolLog): StdioExchanges {
  const open = new Map<number, OpenToolExchange>();
  const end = (exchange: OpenToolExchange, outcome: "complete" | "cut" | "aborted", lines: readonly string[]): void => {
    open.delete(exchange.index);
    const chunks = lines.map((line) => Buffer.from(`${line}\n`, "utf8"));
    log.end(exchange, { outcome, status: 200, headers: {}, chunks, from: "live" });
  };
  return {
    begin(exchange) {
      open.set(exchange.index, exchange);
      return exchange.index;
    },
    done(body, response) {
      const told = stdioDoneSchema.safeParse(parsed(body.toString("utf8")));
      const exchange = told.success ? open.get(told.data.exchange) : undefined;
      if (!told.success || exchange === undefined) {
        sendError(response, 400, "BAD_REQUEST", "no such exchange is open: this is for rootstep's own wrapper");
        return;
      }
      end(exchange, told.data.outcome, told.data.lines);
      response.writeHead(204).end();
    },
    close() {
      for (const exchange of [...open.values()]) end(exchange, "aborted", []);
    },
  };
}

/** The lines of a recorded answer. */
export function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}

/** The answer to a line: one decision, or first that it has to wait. */
export interface StdioAnswer {
  readonly port: Turn<ToolRecording>["port"];
  send(decision: StdioDecision): void;
  /** To be called when the turn was taken: says that it waits, where nothing was decided. */
  heldUnlessSent(): void;
}

export function stdioAnswer(response: ServerResponse): StdioAnswer {
  let isSent = false;
  const write = (decision: StdioDecision, isLast: boolean): void => {
    if (!response.headersSent) response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.write(`${JSON.stringify(decision)}\n`);
    if (isLast) response.end();
  };
  const send = (decision: StdioDecision): void => {
    isSent = true;
    write(decision, true);
  };
  return {
    port: {
      refuse: (_, code, message) => send({ error: { code, message } }),
      onceClosed: (told) => response.once("close", () => told(response.writableFinished)),
      get isGone() {
        return response.destroyed;
      },
    },
    send,
    heldUnlessSent() {
      if (!isSent) write({ from: "held" }, false);
    },
  };
}
