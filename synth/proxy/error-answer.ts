import type { ServerResponse } from "node:http";

/**
 * An error in OpenAI's form, so that a client library shows its message. 4xx but for 408, 409 and 429 is not retried by
 * any library; `x-should-retry` says it to OpenAI's own.
 */
export function sendError(response: ServerResponse, status: number, code: string, message: string): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const body = JSON.stringify({ error: { message, type: "rootstep_proxy_error", param: null, code } });
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "x-should-retry": "false",
  });
  response.end(body);
}
