import { z } from "zod";
import type { PromptSettings } from "./log-prompt.ts";

/** Option of every method that shows a log to a model. */
export const logBudgetOption = z
  .number()
  .int()
  .positive()
  .optional()
  .describe("most characters of the log in a prompt, long steps keep head and tail; the whole log where unset");

/** Option of every method whose answer can be asked for as JSON. Each sets its own default. */
export const structuredOption = z
  .enum(["auto", "never"])
  .describe("auto: ask for JSON held to a schema, and for text where the server refuses that; never: ask for text");

/** The form and budget with which a method's prompts begin. */
export function firstSettings(options: {
  readonly logBudget?: number | undefined;
  readonly structured?: z.infer<typeof structuredOption>;
}): PromptSettings {
  return { form: options.structured === "auto" ? "json" : "text", logBudget: options.logBudget };
}
