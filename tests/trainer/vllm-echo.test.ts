import { describe, expect, it } from "vitest";
import { stream } from "../../src/random.ts";
import { withoutPromptEcho } from "../../trainer/vllm/prompt-echo.ts";

const cut = (body: string, prompt: readonly number[]): string =>
  withoutPromptEcho(Buffer.from(body), JSON.stringify(prompt)).toString();
const answer = (...echoes: readonly (readonly number[] | string)[]) => ({
  choices: echoes.map((echo, index) => ({
    index,
    text: '"prompt_token_ids":[1,2]',
    prompt_token_ids: echo,
    n: [1, 2],
  })),
});

describe("the prompt's echo in a server's answer", () => {
  it("becomes null in every completion, and nothing else changes", () => {
    const body = answer([1, 2], [1, 2], [1, 2]);
    const expected = { choices: body.choices.map((choice) => ({ ...choice, prompt_token_ids: null })) };
    expect(JSON.parse(cut(JSON.stringify(body), [1, 2]))).toEqual(expected);
  });

  it("stays where it differs: longer, shorter, another token, other blanks, no list", () => {
    const body = answer([1, 2, 3], [1], [1, 3], "[1,2]");
    expect(JSON.parse(cut(JSON.stringify(body), [1, 2]))).toEqual(body);
    const spaced = '{"prompt_token_ids": [1, 2]}';
    expect(cut(spaced, [1, 2])).toBe(spaced);
    const torn = '{"prompt_token_ids":[1,2';
    expect(cut(torn, [1, 2])).toBe(torn);
  });

  it("stays within a text, whose quotes are escaped", () => {
    const body = JSON.stringify({ text: '"prompt_token_ids":[1,2]', more: '\\"prompt_token_ids":[1,2]' });
    expect(cut(body, [1, 2])).toBe(body);
  });

  it("is told from any other prompt of random tokens", () => {
    const seed = 20_261_130;
    const random = stream(seed, "echo");
    const draw = () => Array.from({ length: 1 + random.int(6) }, () => random.int(12));
    for (let i = 0; i < 300; i++) {
      const [sent, echoed] = [draw(), draw()];
      const found = JSON.parse(cut(JSON.stringify({ prompt_token_ids: echoed }), sent)).prompt_token_ids;
      const same = sent.join() === echoed.join();
      expect(found, `seed ${seed}, round ${i}`).toEqual(same ? null : echoed);
    }
  });
});
