import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

export interface EvalServer {
  readonly url: string;
  /** Requests so far, by model name. */
  readonly asked: Map<string, number>;
  close(): Promise<void>;
}

/** A chat server on loopback that answers by model name and number of the request (from 1). */
export async function startEvalServer(answer: (model: string, request: number) => string): Promise<EvalServer> {
  const asked = new Map<string, number>();
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const { model }: { model: string } = JSON.parse(body);
      const count = (asked.get(model) ?? 0) + 1;
      asked.set(model, count);
      response.setHeader("content-type", "application/json");
      response.end(
        JSON.stringify({
          model,
          choices: [{ message: { role: "assistant", content: answer(model, count) }, finish_reason: "stop" }],
          usage: { prompt_tokens: 10, completion_tokens: 2 },
        }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}
