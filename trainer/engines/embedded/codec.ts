import { RootstepError } from "../../../src/errors.ts";
import { labelInconsistency } from "../../../src/trajectory/invariants.ts";
import type { Label } from "../../../src/trajectory/schema.ts";
import type { TeacherCodec } from "../engine.ts";
import { type Chain, parseChain } from "./chain.ts";
import { expectations } from "./chain-arithmetic.ts";
import { type Operation, operationWord, TOKEN, tokenOf, wordOf } from "./vocabulary.ts";

/**
 * The codec of the embedded tracer, a "with G" tracer: its prompt begins with the reference solution.
 *
 * Prompt: start value, operations, then per step `@i agent` and what the agent wrote. Completion:
 * `<think>0: 16 -3 1: 13 2: -4 3: 9 bad</think><answer>solver | 3</answer>`: the expected operation or value of each step up
 * to the labelled one, which a teacher calls bad.
 */
export const embeddedCodec: TeacherCodec = {
  id: "embedded-chain-1",
  encodePrompt: (trajectory) => promptWords(parseChain(trajectory)).map(token),
  decodeCompletion: (tokens) => completionText(tokens.map(wordOf)),
  encodeCompletion: (trajectory, label) => {
    const chain = parseChain(trajectory);
    const problem = labelInconsistency(trajectory, { source: "imported", ...label });
    if (problem !== undefined) {
      throw new RootstepError("LABEL_OUTSIDE", { what: problem.message, where: trajectory.id });
    }
    return completionWords(chain, label).map(token);
  },
};

/** Words of the prompt, without the token that begins the completion. */
function promptWords({ start, operations, steps }: Chain): string[] {
  const words = [String(start), ...operations.map(operationWord)];
  steps.forEach((step, index) => {
    words.push(`@${index}`, step.agent);
    switch (step.agent) {
      case "planner":
        if (step.start !== undefined) words.push(String(step.start));
        words.push(operationWord(step.operation));
        break;
      case "solver":
        words.push(String(step.left), operationWord(step.operation), String(step.result));
        break;
      case "verifier":
        words.push(String(step.value));
        break;
    }
  });
  return words;
}

function completionWords({ start, operations }: Chain, label: Pick<Label, "agent" | "step">): string[] {
  const say = (expected: Operation | number) =>
    typeof expected === "number" ? String(expected) : operationWord(expected);
  const words = ["<think>"];
  expectations(start, operations)
    .slice(0, label.step + 1)
    .forEach((expected, index) => {
      words.push(`@${index}`);
      if (index === 0) words.push(String(start));
      words.push(say(expected));
    });
  words.push(
    "bad",
    "</think>",
    "<answer>",
    label.agent.trim().toLowerCase(),
    "|",
    `@${label.step}`,
    "</answer>",
    "<eos>",
  );
  return words;
}

function token(word: string): number {
  const id = tokenOf(word);
  if (id === undefined) {
    throw new RootstepError("VOCABULARY", { what: `the embedded tracer has no token for "${word}"` });
  }
  return id;
}

/**
 * Text of any token sequence, well formed or not. Tags take no space around them, step ids read `3:` while thinking and `3` in an
 * answer. A missing, doubled or misplaced token shows in the text, so the reward's format gate sees it.
 */
function completionText(words: readonly string[]): string {
  const end = wordOf(TOKEN.end);
  const shown = words.at(-1) === end ? words.slice(0, -1) : words;
  let answering = false;
  let text = "";
  let glue = "";
  for (const word of shown) {
    const isTag = word.startsWith("<");
    if (word === "<answer>") answering = true;
    const step = word.startsWith("@") ? word.slice(1) : undefined;
    const written = step === undefined ? word : answering ? step : `${step}:`;
    text += (isTag ? "" : glue) + written;
    glue = isTag ? "" : " ";
  }
  return text;
}
