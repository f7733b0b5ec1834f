import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Template } from "@huggingface/jinja";
import { Tokenizer } from "@huggingface/tokenizers";
import { z } from "zod";
import { sha256 } from "../src/checksum.ts";
import { RootstepError } from "../src/errors.ts";
import type { LogCut } from "../src/methods/method.ts";
import { DEFAULT_LOG_BUDGET, tracerMessages } from "../src/methods/tracer/tracer.ts";
import { methodView } from "../src/methods/view.ts";
import type { Trajectory } from "../src/trajectory/schema.ts";
import type { TeacherCodec } from "./engines/engine.ts";

const tokenText = z.union([z.string(), z.looseObject({ content: z.string() }).transform(({ content }) => content)]);

const tokenizerConfigSchema = z.looseObject({
  chat_template: z.union([z.string(), z.array(z.looseObject({ name: z.string(), template: z.string() }))]).optional(),
  eos_token: tokenText.nullish(),
  bos_token: tokenText.nullish(),
});
const modelConfigSchema = z.looseObject({ vocab_size: z.int().positive() });
const generationConfigSchema = z.looseObject({ eos_token_id: z.union([z.int(), z.array(z.int())]).nullish() });

export interface TextCodecOptions {
  /** Folder of the model's own files: config.json, tokenizer.json, tokenizer_config.json, generation_config.json. */
  readonly folder: string;
  /** Longest prompt in tokens: a longer log is cut by the step-aware budget until it fits. */
  readonly maxPrompt: number;
  /** Passed to the chat template (Qwen3 knows `enable_thinking`). */
  readonly templateOptions?: Readonly<Record<string, unknown>>;
}

/** The codec of a language model: the tracer's prompt in the model's own chat template and tokens. */
export interface TextCodec extends TeacherCodec {
  /** Rows of the model's embedding: ids run from 0 to vocabulary − 1. Some may have no text. */
  readonly vocabulary: number;
  /** Token ids that end an answer. */
  readonly endTokens: readonly number[];
  /** Tokens of a text, without any added start or end. */
  encodeText(text: string): readonly number[];
}

/** A prompt in tokens, how much of it is log, and what of the log was left out. */
interface Fitted {
  readonly tokens: readonly number[];
  readonly logCharacters: number;
  readonly cut: LogCut | undefined;
}

/** Of a log that does not fit, the next budget aims a little below what would just fit. */
const CUT_MARGIN = 0.95;
/** Below so many characters a log says nothing. */
const SMALLEST_LOG = 400;

/**
 * Reads tokenizer and chat template from a model's folder.
 *
 * @throws RootstepError FILE_MISSING where a file or the chat template is missing, DATA_INVALID where one cannot be read
 */
export function openTextCodec(options: TextCodecOptions): TextCodec {
  const { folder, maxPrompt } = options;
  const tokenizerJson = readJson(folder, "tokenizer.json", z.record(z.string(), z.unknown()));
  const config = readJson(folder, "tokenizer_config.json", tokenizerConfigSchema);
  const tokenizer = openTokenizer(tokenizerJson, config, folder);
  const templateText = chatTemplate(folder, config);
  const template = openTemplate(templateText, folder);
  const endTokens = endTokensOf(folder, config, tokenizer);
  const end = new Set(endTokens);
  const vocabulary = readJson(folder, "config.json", modelConfigSchema).vocab_size;

  const fits = new WeakMap<Trajectory, Fitted>();
  const encodeText = (text: string): readonly number[] => tokenizer.encode(text, { add_special_tokens: false }).ids;

  function encodeWith(trajectory: Trajectory, logBudget: number) {
    const view = methodView(trajectory, { withReference: true });
    const prompt = tracerMessages(view, logBudget);
    const text = template.render({
      messages: prompt.messages.map(({ role, content }) => ({ role, content })),
      add_generation_prompt: true,
      ...(config.bos_token && { bos_token: config.bos_token }),
      ...(config.eos_token && { eos_token: config.eos_token }),
      ...options.templateOptions,
    });
    return { tokens: encodeText(text), logCharacters: prompt.logCharacters, cut: prompt.cut };
  }

  /** The prompt of a run, its log cut until it fits; kept as long as the run, for who asks what was cut. */
  function fitted(trajectory: Trajectory): Fitted {
    const known = fits.get(trajectory);
    if (known !== undefined) return known;
    let fit: Fitted = encodeWith(trajectory, DEFAULT_LOG_BUDGET);
    while (fit.tokens.length > maxPrompt && fit.logCharacters > SMALLEST_LOG) {
      const budget = Math.floor(fit.logCharacters * (maxPrompt / fit.tokens.length) * CUT_MARGIN);
      const next = encodeWith(trajectory, Math.max(budget, SMALLEST_LOG));
      if (next.logCharacters >= fit.logCharacters) break;
      fit = next;
    }
    fits.set(trajectory, fit);
    return fit;
  }

  const identity = [tokenizerJson, templateText, endTokens, options.templateOptions ?? {}];
  return {
    id: `text:${sha256(JSON.stringify(identity)).slice(0, 12)}`,
    vocabulary,
    endTokens,
    encodeText,
    encodeCompletion: (_, { agent, step, reason }) => {
      const think = reason ?? `Step ${step} is the earliest whose correction makes the run succeed.`;
      const answer = `<think>${withoutTags(think)}</think><answer>${agent} | ${step}</answer>`;
      return [...encodeText(answer), ...endTokens.slice(0, 1)];
    },
    encodePrompt: (trajectory) => fitted(trajectory).tokens,
    cutOf: (trajectory) => fitted(trajectory).cut,
    decodeCompletion(tokens) {
      let length = tokens.length;
      while (length > 0 && end.has(tokens[length - 1] ?? -1)) length--;
      if (length === 0) return "";
      // The gate's own tags may be added tokens: all of them are text to the reward.
      return tokenizer.decode(tokens.slice(0, length), {
        skip_special_tokens: false,
        clean_up_tokenization_spaces: false,
      });
    },
  };
}

/** A reason that names the answer's own tags would fail the format gate. */
function withoutTags(text: string): string {
  return text.replaceAll(/<\/?(?:think|answer)>/gu, "").trim();
}

function openTokenizer(tokenizerJson: object, config: object, folder: string): Tokenizer {
  try {
    return new Tokenizer(tokenizerJson, config);
  } catch (cause) {
    const what = "the tokenizer cannot be built from the model's files";
    throw new RootstepError("DATA_INVALID", { what, where: join(folder, "tokenizer.json"), cause });
  }
}

function openTemplate(text: string, folder: string): Template {
  try {
    return new Template(text);
  } catch (cause) {
    throw new RootstepError("DATA_INVALID", { what: "the chat template cannot be read", where: folder, cause });
  }
}

/** Newer models keep the template in a file of its own, older ones in the tokenizer's configuration. */
function chatTemplate(folder: string, config: z.infer<typeof tokenizerConfigSchema>): string {
  const file = join(folder, "chat_template.jinja");
  if (existsSync(file)) return readFileSync(file, "utf8");
  const { chat_template: given } = config;
  const text = typeof given === "string" ? given : given?.find(({ name }) => name === "default")?.template;
  if (text !== undefined) return text;
  throw new RootstepError("FILE_MISSING", {
    what: "the model has no chat template",
    where: folder,
    hint: "Use an instruction-tuned model, or put a chat_template.jinja into the folder.",
  });
}

function endTokensOf(
  folder: string,
  config: z.infer<typeof tokenizerConfigSchema>,
  tokenizer: Tokenizer,
): readonly number[] {
  const named = config.eos_token ? tokenizer.token_to_id(config.eos_token) : undefined;
  const generation = existsSync(join(folder, "generation_config.json"))
    ? readJson(folder, "generation_config.json", generationConfigSchema).eos_token_id
    : undefined;
  const all = [...(named === undefined ? [] : [named]), ...[generation ?? []].flat()];
  if (all.length > 0) return [...new Set(all)];
  throw new RootstepError("DATA_INVALID", { what: "the model names no end token", where: folder });
}

function readJson<T>(folder: string, name: string, schema: z.ZodType<T>): T {
  const where = join(folder, name);
  if (!existsSync(where)) {
    const hint = "Give the folder of the model as it was downloaded, with its tokenizer files.";
    throw new RootstepError("FILE_MISSING", { what: `the model's ${name} is not there`, where, hint });
  }
  try {
    return schema.parse(JSON.parse(readFileSync(where, "utf8")));
  } catch (cause) {
    throw new RootstepError("DATA_INVALID", { what: `the model's ${name} cannot be read`, where, cause });
  }
}
