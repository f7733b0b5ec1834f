import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Completion, SampleRequest, TrainingEngine } from "../../trainer/engines/engine.ts";

/** The end token of the byte model; ids below are bytes. */
export const BYTE_END = 256;

/** GPT-2's printable character for every byte: what byte-level tokenizers write in their vocabularies. */
function byteCharacters(): string[] {
  const printable = (byte: number): boolean =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : 256 + others++));
}

/** Writes the files of a model whose tokens are the bytes of a text: a real tokenizer and chat template, and no weights. */
export function writeByteModel(
  folder: string,
  template = "{{ messages | map(attribute='content') | join('\n') }}",
): string {
  const files = {
    "config.json": { vocab_size: 257 },
    "tokenizer.json": {
      version: "1.0",
      added_tokens: [
        {
          id: BYTE_END,
          content: "<end>",
          special: true,
          single_word: false,
          lstrip: false,
          rstrip: false,
          normalized: false,
        },
      ],
      normalizer: null,
      pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false },
      post_processor: null,
      decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
      model: {
        type: "BPE",
        vocab: Object.fromEntries(byteCharacters().map((character, byte) => [character, byte])),
        merges: [],
      },
    },
    "tokenizer_config.json": { chat_template: template, eos_token: "<end>" },
  };
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), JSON.stringify(content));
  return folder;
}

/** A server's engine over that vocabulary that answers every prompt with the same text, and can do nothing else. */
export function createSayingEngine(answer: (prompt: string) => string): TrainingEngine {
  const refuse = async (): Promise<never> => {
    throw new Error("this engine only answers");
  };
  return {
    id: "saying",
    codec: { id: "bytes", encodePrompt: () => [], encodeCompletion: () => [], decodeCompletion: () => "" },
    limits: { maxPrompt: 1e6, maxCompletion: 1e6, groupSize: 1e6 },
    sample: async ({ prompts, n }: SampleRequest) =>
      prompts.map((prompt) =>
        Array.from({ length: n }, (): Completion => {
          const tokens = [...Buffer.from(answer(Buffer.from(prompt).toString("utf8"))), BYTE_END];
          return { tokens, logprobs: tokens.map(() => -0.5), finishReason: "stop" };
        }),
      ),
    forward: refuse,
    forwardBackward: refuse,
    optimStep: refuse,
    exportState: async () => ({ weights: new Uint8Array([1]), optimizer: new Uint8Array([2]) }),
    importState: async () => {},
    close: async () => {},
  };
}
