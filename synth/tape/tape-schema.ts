import { z } from "zod";
import { chatResponseSchema, chatToolCallSchema } from "../../src/models/chat-response.ts";
import { TAPE_VERSION } from "./tape.ts";

const messageSchema = z.strictObject({
  role: z.enum(["system", "user", "assistant", "tool"]),
  content: z.string(),
  name: z.string().exactOptional(),
  toolCalls: z.array(chatToolCallSchema).exactOptional(),
  toolCallId: z.string().exactOptional(),
});

const jsonSchema = z.record(z.string(), z.unknown());

const requestSchema = z.strictObject({
  messages: z.array(messageSchema),
  tools: z
    .array(z.strictObject({ name: z.string(), description: z.string().exactOptional(), parameters: jsonSchema }))
    .exactOptional(),
  responseFormat: z
    .union([
      z.strictObject({ type: z.literal("json_object") }),
      z.strictObject({ type: z.literal("json_schema"), name: z.string(), schema: jsonSchema }),
    ])
    .exactOptional(),
  temperature: z.number().exactOptional(),
  topP: z.number().exactOptional(),
  maxTokens: z.number().exactOptional(),
  seed: z.number().exactOptional(),
  stop: z.array(z.string()).exactOptional(),
});

/** A tape as a run folder keeps it. */
export const tapeSchema = z.strictObject({
  version: z.literal(TAPE_VERSION),
  calls: z.array(
    z.strictObject({
      index: z.number().int().nonnegative(),
      lane: z.string(),
      request: requestSchema,
      response: chatResponseSchema,
    }),
  ),
});
