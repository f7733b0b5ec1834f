import type { Tensor } from "onnxruntime-node";
import { RootstepError } from "../../../src/errors.ts";
import type { Loss, TrainingGroup } from "../engine.ts";
import { floats, integers } from "./graphs.ts";
import type { ModelShape } from "./manifest.ts";
import { TOKEN } from "./vocabulary.ts";

/**
 * Inputs of a training graph for P groups of up to n completions. Rows are [prompt | n segments of G positions]; a segment reads
 * the begin token and the completion shifted by one, so position g of it predicts token g. Positions without a token weigh 0.
 */
export function packGroups(
  groups: readonly TrainingGroup[],
  n: number,
  loss: Loss,
  model: ModelShape,
): Readonly<Record<string, Tensor>> {
  const { maxPrompt: T, maxCompletion: G } = model;
  const P = groups.length;
  const S = T + n * G;
  const prompt = new Int32Array(P * T);
  const promptLength = new Int32Array(P);
  const completion = new Int32Array(P * n * G);
  const target = new Int32Array(P * S);
  const weight = new Float32Array(P * S);
  const advantage = new Float32Array(P * S);
  const oldLogprob = new Float32Array(P * S);
  groups.forEach((group, p) => {
    prompt.set(group.prompt, p * T);
    promptLength[p] = group.prompt.length;
    target.set(group.prompt.slice(1), p * S);
    if (loss.kind === "cross-entropy") weight.fill(group.promptWeight ?? 0, p * S, p * S + group.prompt.length - 1);
    for (let k = 0; k < n; k += 1) {
      const segment = (p * n + k) * G;
      const row = p * S + T + k * G;
      completion[segment] = TOKEN.begin;
      const item = group.completions[k];
      if (item === undefined) continue;
      completion.set(item.tokens.slice(0, G - 1), segment + 1);
      target.set(item.tokens, row);
      weight.set(item.weights, row);
      advantage.fill(item.advantage, row, row + item.tokens.length);
      if (item.oldLogprobs !== undefined) oldLogprob.set(item.oldLogprobs, row);
    }
  });
  return {
    prompt: integers(prompt, [P, T]),
    prompt_length: integers(promptLength, [P]),
    completion: integers(completion, [P, n, G]),
    target: integers(target, [P, S]),
    weight: floats(weight, [P, S]),
    advantage: floats(advantage, [P, S]),
    old_logprob: floats(oldLogprob, [P, S]),
    settings: floats(
      loss.kind === "cross-entropy" ? Float32Array.of(1, 0, 0) : Float32Array.of(0, loss.clipLow, loss.clipHigh),
      [3],
    ),
  };
}

/** Log-probabilities of the completions' tokens out of a training graph's [P, T+n*G]. */
export function unpackLogprobs(
  groups: readonly TrainingGroup[],
  n: number,
  logprob: Float32Array,
  model: ModelShape,
): number[][][] {
  const { maxPrompt: T, maxCompletion: G } = model;
  return groups.map((group, p) =>
    group.completions.map((item, k) => {
      const row = p * (T + n * G) + T + k * G;
      return Array.from(logprob.subarray(row, row + item.tokens.length));
    }),
  );
}

/** @throws RootstepError ENGINE_FAILED where groups do not fit the graphs or lack what the loss needs. */
export function checkGroups(groups: readonly TrainingGroup[], loss: Loss, model: ModelShape): void {
  groups.forEach((group, g) => {
    checkPrompt(group.prompt, g, model);
    checkGroupSize(group.completions.length, model, `group ${g}`);
    group.completions.forEach((item, k) => {
      const where = `group ${g}, completion ${k}`;
      const length = item.tokens.length;
      checkTokens(item.tokens, where, model);
      if (length > model.maxCompletion) throw unfit(where, `${length} tokens, at most ${model.maxCompletion} fit`);
      if (item.weights.length !== length) throw unfit(where, `${item.weights.length} weights for ${length} tokens`);
      if (loss.kind === "clipped-surrogate" && item.oldLogprobs?.length !== length) {
        throw unfit(where, `the clipped surrogate needs one old log-probability for each of ${length} tokens`);
      }
    });
  });
}

/** @throws RootstepError ENGINE_FAILED */
export function checkPrompt(prompt: readonly number[], index: number, model: ModelShape): void {
  const where = `prompt ${index}`;
  if (prompt.length < 1 || prompt.length > model.maxPrompt) {
    throw unfit(where, `${prompt.length} tokens, 1 to ${model.maxPrompt} fit`);
  }
  checkTokens(prompt, where, model);
}

/** @throws RootstepError ENGINE_FAILED */
export function checkGroupSize(size: number, model: ModelShape, where: string): void {
  if (!Number.isInteger(size) || size < 1 || size > model.groupSize) {
    throw unfit(where, `${size} completions for a prompt, 1 to ${model.groupSize} fit`);
  }
}

function checkTokens(tokens: readonly number[], where: string, model: ModelShape): void {
  const foreign = tokens.find((token) => !Number.isInteger(token) || token < 0 || token >= model.vocabulary);
  if (foreign !== undefined) throw unfit(where, `${foreign} is not a token of this model`);
}

function unfit(where: string, what: string): RootstepError {
  return new RootstepError("ENGINE_FAILED", {
    what: `the embedded engine cannot take this: ${what}`,
    where,
    hint: "Keep prompts, completions and groups within the engine's limits (`rootstep list engines`).",
  });
}
