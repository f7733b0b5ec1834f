import { z } from "zod";
import type { ChatRequest } from "../../models/chat-model.ts";

/** Options that every method with a model has. */
export const samplingOptions = {
  temperature: z.number().min(0).max(2).default(0).describe("sampling temperature; 0 takes the likeliest token"),
  topP: z.number().gt(0).max(1).optional().describe("nucleus sampling; the server's default where unset"),
  maxTokens: z.number().int().positive().default(2048).describe("most completion tokens per call, reasoning included"),
};

export interface Sampling {
  readonly temperature: number;
  readonly topP?: number | undefined;
  readonly maxTokens: number;
}

/** The sampling part of a request. */
export function samplingParameters(options: Sampling): Pick<ChatRequest, "temperature" | "topP" | "maxTokens"> {
  return {
    temperature: options.temperature,
    maxTokens: options.maxTokens,
    ...(options.topP !== undefined && { topP: options.topP }),
  };
}
