import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { z } from "zod";
import { asRootstepError, RootstepError } from "../../src/errors.ts";
import type { ChatModel, ChatResponse } from "../../src/models/chat-model.ts";
import { refusal, simulatorBackend } from "./backend.ts";
import { chatBodySchema, chatChunks, chatCompletion, chatRequestOf } from "./chat-wire.ts";
import { mountResponses } from "./responses.ts";

export interface SimulatorServerOptions {
  readonly model: ChatModel;
  /** Loopback port; 0 picks a free one. */
  readonly port: number;
  readonly now: () => Date;
}

/**
 * The simulator behind an OpenAI-compatible API on loopback: /v1/chat/completions (streaming too) and /v1/models. A
 * request with a `seed` is answered from that seed alone; without one, the n-th identical request has seed n.
 *
 * @throws RootstepError PORT_IN_USE
 */
export async function serveSimulator(
  options: SimulatorServerOptions,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer(getRequestListener(application(options).fetch));
  await listen(server, options.port);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const inUse = cause.code === "EADDRINUSE";
      reject(
        inUse
          ? new RootstepError("PORT_IN_USE", { what: `port ${port} is taken`, where: `127.0.0.1:${port}`, cause })
          : asRootstepError(cause),
      );
    });
    server.listen(port, "127.0.0.1", resolve);
  });
}

function application({ model, now }: SimulatorServerOptions): Hono {
  const app = new Hono();
  const backend = simulatorBackend(model, now);
  app.get("/v1/models", (context) =>
    context.json({ object: "list", data: [{ id: model.id, object: "model", created: 0, owned_by: "rootstep" }] }),
  );
  app.post("/v1/chat/completions", async (context) => {
    const body = chatBodySchema.safeParse(await context.req.json().catch(() => undefined));
    if (!body.success) return context.json(refusal(z.prettifyError(body.error)), 400);
    const { stream, stream_options } = body.data;
    const id = backend.nextId();
    const created = backend.created();
    let response: ChatResponse;
    try {
      response = await backend.complete(chatRequestOf(body.data));
    } catch (error) {
      return context.json(refusal(asRootstepError(error).message), 400);
    }
    if (stream !== true) return context.json(chatCompletion(id, created, response));
    return streamSSE(context, async (sse) => {
      for (const chunk of chatChunks(id, created, response, stream_options?.include_usage === true)) {
        await sse.writeSSE({ data: JSON.stringify(chunk) });
      }
      await sse.writeSSE({ data: "[DONE]" });
    });
  });
  mountResponses(app, backend);
  return app;
}
