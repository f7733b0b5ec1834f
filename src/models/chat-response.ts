import { z } from "zod";
import { usageSchema } from "../trajectory/schema.ts";
import type { ChatResponse } from "./chat-model.ts";

export const chatToolCallSchema = z.strictObject({ id: z.string(), name: z.string(), arguments: z.string() });

/** An answer as it is kept: in caches, on tapes, in ledgers. */
export const chatResponseSchema: z.ZodType<ChatResponse> = z.strictObject({
  content: z.string(),
  reasoning: z.string().exactOptional(),
  toolCalls: z.array(chatToolCallSchema),
  finishReason: z.enum(["stop", "length", "tool_calls", "content_filter", "unknown"]),
  usage: usageSchema.exactOptional(),
  model: z.string(),
});
