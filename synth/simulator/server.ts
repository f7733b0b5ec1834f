import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { z } from "zod";
import { asRootstepError, RootstepError } from "../../src/errors.ts";
import type { ChatModel, ChatResponse } from "../../src/models/chat-model.ts";

const bodySchema = z.looseObject({
  model: z.string().optional(),
  messages: z
    .array(z.looseObject({ role: z.enum(["system", "user", "assistant", "tool"]), content: z.string() }))
    .min(1),
  seed: z.number().int().optional(),
  stream: z.boolean().optional(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
});

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
  const seen = new Map<string, number>();
  let served = 0;
  app.get("/v1/models", (context) =>
    context.json({ object: "list", data: [{ id: model.id, object: "model", created: 0, owned_by: "rootstep" }] }),
  );
  app.post("/v1/chat/completions", async (context) => {
    const body = bodySchema.safeParse(await context.req.json().catch(() => undefined));
    if (!body.success) return context.json(refusal(z.prettifyError(body.error)), 400);
    const { messages, seed, stream, stream_options } = body.data;
    const key = JSON.stringify(messages);
    const occurrence = seen.get(key) ?? 0;
    seen.set(key, occurrence + 1);
    const id = `sim-${served++}`;
    const created = Math.floor(now().getTime() / 1000);
    let response: ChatResponse;
    try {
      response = await model.complete({
        messages: messages.map(({ role, content }) => ({ role, content })),
        seed: seed ?? occurrence,
      });
    } catch (error) {
      return context.json(refusal(asRootstepError(error).message), 400);
    }
    if (stream !== true) return context.json(completion(id, created, response));
    return streamSSE(context, async (sse) => {
      const chunk = (choices: unknown[], usage?: unknown): Promise<void> =>
        sse.writeSSE({
          data: JSON.stringify({ id, created, object: "chat.completion.chunk", model: response.model, choices, usage }),
        });
      for (const piece of response.content.match(/\s*\S+/gu) ?? []) {
        await chunk([{ index: 0, delta: { role: "assistant", content: piece }, finish_reason: null }]);
      }
      await chunk([{ index: 0, delta: {}, finish_reason: response.finishReason }]);
      if (stream_options?.include_usage === true) await chunk([], wireUsage(response));
      await sse.writeSSE({ data: "[DONE]" });
    });
  });
  return app;
}

function completion(id: string, created: number, response: ChatResponse): unknown {
  return {
    id,
    created,
    object: "chat.completion",
    model: response.model,
    choices: [
      { index: 0, message: { role: "assistant", content: response.content }, finish_reason: response.finishReason },
    ],
    usage: wireUsage(response),
  };
}

function wireUsage({ usage }: ChatResponse): unknown {
  if (usage === undefined) return undefined;
  const { promptTokens, completionTokens } = usage;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

function refusal(message: string): unknown {
  return { error: { message, type: "invalid_request_error", code: null } };
}
