import type { ServerResponse } from "node:http";

export interface ErrorAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * An error in OpenAI's form, so that a client library shows its message. 4xx but for 408, 409 and 429 is not retried by
 * any library; `x-should-retry` says it to OpenAI's own.
 */
export function errorAnswer(code: string, message: string): ErrorAnswer {
  const body = JSON.stringify({ error: { message, type: "rootstep_proxy_error", param: null, code } });
  const headers = {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    "x-should-retry": "false",
  };
  return { headers, body };
}

export function sendError(response: ServerResponse, status: number, code: string, message: string): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const { headers, body } = errorAnswer(code, message);
  response.writeHead(status, headers);
  response.end(body);
}
