import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { tracerReward } from "../../src/reward/reward.ts";
import { type Trajectory, trajectorySchema } from "../../src/trajectory/schema.ts";
import { buildExamples } from "../../trainer/dataset.ts";
import { openTextCodec } from "../../trainer/text-codec.ts";

const END = 256;

/** A byte-level tokenizer without merges: a token per byte, written as GPT-2's table of printable characters writes bytes. */
function writeModel(folder: string): void {
  const printable = (byte: number): boolean =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
  let next = 256;
  const vocab = Object.fromEntries(
    Array.from({ length: 256 }, (_, byte) => [String.fromCodePoint(printable(byte) ? byte : next++), byte]),
  );
  const added = { id: END, content: "<|end|>", special: true, normalized: false };
  const flags = { single_word: false, lstrip: false, rstrip: false };
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
  const files = {
    "tokenizer.json": {
      ...{ version: "1.0", truncation: null, padding: null, normalizer: null, post_processor: null },
      added_tokens: [{ ...added, ...flags }],
      pre_tokenizer: byteLevel,
      decoder: byteLevel,
      model: { type: "BPE", vocab: { ...vocab, "<|end|>": END }, merges: [], byte_fallback: false },
    },
    "tokenizer_config.json": {
      eos_token: "<|end|>",
      chat_template: "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: ",
    },
    "config.json": { vocab_size: END + 1 },
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), JSON.stringify(content));
}

const label = { agent: "agent-3", step: 3, source: "injection" } as const;
const run = (id: string, steps: number, characters: number): Trajectory =>
  trajectorySchema.parse({
    schemaVersion: 1,
    id,
    task: { id: "t", text: "Find it.", source: "test", groupId: id },
    system: "test",
    stepPolicy: "per-call",
    steps: Array.from({ length: steps }, (_, index) => ({
      index,
      agent: `agent-${index}`,
      content: `head-${index} ${"é ".repeat(characters / 2)} tail-${index}`,
    })),
    outcome: { success: false, checker: "test" },
    labels: [label],
    provenance: { kind: "injected", simulated: true },
  });

describe("the codec of a language model", () => {
  const folder = mkdtempSync(join(tmpdir(), "rootstep-codec-"));
  writeModel(folder);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const codec = (maxPrompt: number) => openTextCodec({ folder, maxPrompt });
  // One byte is one token, so tokens can be read without the codec.
  const textOf = (tokens: readonly number[]): string => Buffer.from(tokens.filter((id) => id < END)).toString("utf8");

  it("writes a log that fits whole", () => {
    const text = textOf(codec(100_000).encodePrompt(run("short", 6, 40)));
    for (let step = 0; step < 6; step++) expect(text).toContain(`head-${step} ${"é ".repeat(20)} tail-${step}`);
  });

  it("cuts a log that does not fit until it does, and keeps every step's number, agent, head and tail", () => {
    const whole = codec(1_000_000).encodePrompt(run("long", 12, 6_000));
    expect(whole.length).toBeGreaterThan(60_000);
    for (const maxPrompt of [40_000, 20_000, 9_000]) {
      const tokens = codec(maxPrompt).encodePrompt(run("long", 12, 6_000));
      expect(tokens.length).toBeLessThanOrEqual(maxPrompt);
      // Most of the room is used.
      expect(tokens.length).toBeGreaterThan(0.7 * maxPrompt);
      const text = textOf(tokens);
      for (let step = 0; step < 12; step++) {
        expect(text).toMatch(new RegExp(`${step}\\b[^\\n]*agent-${step}\\b`, "u"));
        expect(text).toContain(`head-${step}`);
        expect(text).toContain(`tail-${step}`);
      }
    }
  });

  it("leaves out of the training data, by name, a log that cannot be cut so far", () => {
    const { examples, refused } = buildExamples([run("short", 4, 10), run("hopeless", 300, 200)], codec(6_000), {
      labels: ["injection"],
      maxPrompt: 6_000,
      withReference: true,
    });
    expect(examples.map(({ trajectory }) => trajectory.id)).toEqual(["short"]);
    expect(refused).toMatchObject([{ id: "hopeless", reason: "prompt-too-long" }]);
  });

  it("reads back what it wrote, without the end token, and teaches an answer that earns the whole reward", () => {
    const { encodeText, decodeCompletion, encodeCompletion, endTokens } = codec(1_000);
    expect(endTokens).toEqual([END]);
    for (const text of ["<think>a</think>", "naïve 日本 \u0000\n\n  x ", "👩‍🔬"]) {
      expect(encodeText(text)).toEqual([...Buffer.from(text)]);
      expect(decodeCompletion([...encodeText(text), END])).toBe(text);
    }
    expect(decodeCompletion([END])).toBe("");
    const reason = "It named </think> by mistake.";
    const taught = encodeCompletion(run("short", 4, 10), { ...label, reason });
    expect(taught.at(-1)).toBe(END);
    expect(tracerReward(decodeCompletion(taught), label, { lambda: 0.5, sigma: 1 }).total).toBe(1);
  });
});
