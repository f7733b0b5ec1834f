import { isError, type RootstepError } from "../../errors.ts";
import { type LogPrompt, promptCharacters } from "./log-prompt.ts";

// The words of vLLM, SGLang, OpenAI, llama.cpp, TGI, Anthropic and proxies before them.
const OVERFLOW =
  /context[ _-]?(?:length|window|size)|(?:maximum|max) (?:model|sequence|input) length|max_model_len|n_ctx|prompt is too long|input is too long|too many (?:input )?tokens|inputs?`? (?:must have less than|tokens)/iu;

/** True for a refusal that says the prompt does not fit into the model's context. */
export function isContextOverflow(error: unknown): error is RootstepError {
  return isError(error, "MODEL_REFUSED_REQUEST") && OVERFLOW.test(error.what);
}

/** Room left for what tokens and characters do not say exactly: other text has fewer characters per token. */
const MARGIN = 0.9;

/**
 * The budget to try next: half of what the log took. Where the server says how many tokens there were and how many fit,
 * the log shrinks to that share at once, if it is smaller.
 */
export function smallerBudget(prompt: LogPrompt, error: RootstepError, maxTokens: number): number {
  const half = Math.floor(prompt.logCharacters / 2);
  const counts = tokenCounts(error.what);
  if (counts === undefined) return Math.max(1, half);
  const characters = promptCharacters(prompt);
  const fitting = ((counts.limit - maxTokens) / counts.asked) * characters * MARGIN;
  return Math.max(1, Math.min(half, Math.floor(fitting - (characters - prompt.logCharacters))));
}

const LIMIT =
  /(?:context (?:length|window|size)|(?:model|sequence|input) length|must be <=)[^0-9]{0,20}([0-9]{3,9})|([0-9]{3,9}) maximum/iu;

/** The context's size and the tokens asked for, both from the server's message; undefined where it does not say. */
function tokenCounts(message: string): { readonly limit: number; readonly asked: number } | undefined {
  const match = LIMIT.exec(message);
  const limit = Number(match?.[1] ?? match?.[2]);
  if (!Number.isFinite(limit)) return undefined;
  const numbers = [...message.matchAll(/\b[0-9]{3,9}\b/gu)].map(Number);
  const asked = Math.max(...numbers);
  return asked > limit ? { limit, asked } : undefined;
}
