import { isError, type RootstepError } from "../../errors.ts";
import { type LogPrompt, promptCharacters } from "./log-prompt.ts";

// The words of vLLM, SGLang, OpenAI, llama.cpp, TGI, Anthropic and proxies before them.
const OVERFLOW =
  /context[ _-]?(?:length|window|size)|(?:maximum|max) (?:model|sequence|input) length|max_model_len|n_ctx|prompt is too long|input is too long|too many (?:input )?tokens|inputs?`? (?:must have less than|tokens)/iu;

// Of vLLM: the answer alone is longer than the context. A shorter log would not help.
const ANSWER_TOO_LONG = /\bmax_(?:completion_)?tokens\b[^.]{0,20} cannot be greater than/iu;

/** True for a refusal that says the prompt does not fit into the model's context. */
export function isContextOverflow(error: unknown): error is RootstepError {
  return isError(error, "MODEL_REFUSED_REQUEST") && OVERFLOW.test(error.what) && !ANSWER_TOO_LONG.test(error.what);
}

/** Room left for what tokens and characters do not say exactly: other text has fewer characters per token. */
const MARGIN = 0.9;

/** More than text has for a token: with it a count of tokens comes out too small, never too large. */
const MOST_CHARACTERS_PER_TOKEN = 4;

/**
 * The budget to try next: half of what the log took. Where the server says how many tokens there were and how many fit,
 * the log shrinks to that share at once, if it is smaller. A server that stops counting at its limit ("at least 8193 tokens")
 * says only how many fit; the rest is estimated from the characters.
 */
export function smallerBudget(prompt: LogPrompt, error: RootstepError, maxTokens: number): number {
  const half = Math.floor(prompt.logCharacters / 2);
  const counts = tokenCounts(error.what);
  if (counts === undefined) return Math.max(1, half);
  const characters = promptCharacters(prompt);
  const asked = counts.atLeast ? Math.max(counts.asked, characters / MOST_CHARACTERS_PER_TOKEN) : counts.asked;
  const fitting = ((counts.limit - maxTokens) / asked) * characters * MARGIN;
  return Math.max(1, Math.min(half, Math.floor(fitting - (characters - prompt.logCharacters))));
}

const LIMIT =
  /(?:context (?:length|window|size)|(?:model|sequence|input) length|must be <=)[^0-9]{0,20}([0-9]{3,9})|([0-9]{3,9}) maximum/iu;

/** The context's size and the tokens asked for, both from the server's message; undefined where it does not say. */
function tokenCounts(message: string): { limit: number; asked: number; atLeast: boolean } | undefined {
  const match = LIMIT.exec(message);
  const limit = Number(match?.[1] ?? match?.[2]);
  if (!Number.isFinite(limit)) return undefined;
  const numbers = [...message.matchAll(/\b[0-9]{3,9}\b/gu)].map(Number);
  const asked = Math.max(...numbers);
  return asked > limit ? { limit, asked, atLeast: /\bat least\b/iu.test(message) } : undefined;
}
