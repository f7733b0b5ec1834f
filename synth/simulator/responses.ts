import type { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { z } from "zod";
import { asRootstepError } from "../../src/errors.ts";
import type { ChatResponse } from "../../src/models/chat-model.ts";
import { responsesEvents } from "../proxy/responses-events.ts";
import { refusal, type SimulatorBackend } from "./backend.ts";
import { chatRequestOf, responseObject, responsesBodySchema } from "./responses-wire.ts";

/** The Responses API before the same model, whole and streamed. Nothing is stored: every request shows all of its context. */
export function mountResponses(app: Hono, backend: SimulatorBackend): void {
  app.post("/v1/responses", async (context) => {
    const body = responsesBodySchema.safeParse(await context.req.json().catch(() => undefined));
    if (!body.success) return context.json(refusal(z.prettifyError(body.error)), 400);
    const id = backend.nextId();
    const created = backend.created();
    let response: ChatResponse;
    try {
      response = await backend.complete(chatRequestOf(body.data));
    } catch (error) {
      return context.json(refusal(asRootstepError(error).message), 400);
    }
    const answer = responseObject(id, created, response, body.data);
    if (body.data.stream !== true) return context.json(answer);
    return streamSSE(context, async (sse) => {
      for (const { event, data } of responsesEvents(answer)) {
        await sse.writeSSE({ data: JSON.stringify(data), ...(event === undefined ? {} : { event }) });
      }
    });
  });
}
