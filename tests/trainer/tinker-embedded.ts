import { embeddedCodec } from "../../trainer/engines/embedded/codec.ts";
import type { ModelShape } from "../../trainer/engines/embedded/manifest.ts";
import { TOKEN, tokenOf } from "../../trainer/engines/embedded/vocabulary.ts";
import type { Loss, TrainingEngine, TrainingGroup } from "../../trainer/engines/engine.ts";
import type { TextCodec } from "../../trainer/text-codec.ts";
import type { ServedDatum } from "./tinker-wire.ts";

/**
 * The embedded tracer's codec as a language model's: the token that begins an answer, which the embedded graphs put in
 * by themselves, ends the prompt, as a chat template ends with the assistant's turn. A server finds the answer by it.
 */
export function embeddedTextCodec(model: Pick<ModelShape, "vocabulary">): TextCodec {
  return {
    ...embeddedCodec,
    encodePrompt: (trajectory) => [...embeddedCodec.encodePrompt(trajectory), TOKEN.begin],
    vocabulary: model.vocabulary,
    endTokens: [TOKEN.end],
    encodeText: (text) => text.split(" ").map((word) => tokenOf(word) ?? TOKEN.pad),
  };
}

export interface ServedGroups {
  readonly groups: readonly TrainingGroup[];
  /** Sets the completions' log-probabilities in rows over all targets. The graphs give none on prompts: 0 there. */
  rows(logprobs: readonly (readonly (readonly number[])[])[]): number[][];
}

/** Reading the prompt of a sample request. */
export function promptOf(tokens: readonly number[]): readonly number[] {
  if (tokens.at(-1) !== TOKEN.begin) throw new Error("the prompt does not end with the token that begins an answer");
  return tokens.slice(0, -1);
}

/** What a datum's tokens count in the loss: `weights` and one advantage make the product of its weights and advantages. */
function lossTerms({ weights, advantages }: ServedDatum, scale: number) {
  if (advantages === undefined) return { weights: weights.map((weight) => weight * scale), advantage: 1 };
  const products = weights.map((weight, t) => weight * (advantages[t] ?? Number.NaN) * scale);
  const advantage = products.some((product) => product < 0) ? -1 : 1;
  if (products.some((product) => product * advantage < 0)) throw new Error("advantages of both signs in one sequence");
  return { weights: products.map((product) => product * advantage), advantage };
}

/** Neighbours with one prompt form a group, as large as the graphs take. @param scale of each datum's loss */
export function servedGroups(
  data: readonly ServedDatum[],
  groupSize: number,
  scale: (datum: ServedDatum) => number = () => 1,
): ServedGroups {
  const groups: { prompt: readonly number[]; completions: TrainingGroup["completions"][number][] }[] = [];
  const places = data.map((datum) => {
    const { input, targets, logprobs } = datum;
    const full = [...input.slice(0, 1), ...targets];
    if (input.some((token, i) => token !== full[i])) throw new Error("targets are not the inputs moved by one");
    const begin = full.indexOf(TOKEN.begin);
    if (begin < 1) throw new Error("no token begins an answer");
    const { weights, advantage } = lossTerms(datum, scale(datum));
    if (weights.slice(0, begin).some((weight) => weight !== 0)) throw new Error("the prompt cannot be trained on");
    const prompt = full.slice(0, begin);
    const last = groups.at(-1);
    const fits = last?.prompt.join() === prompt.join() && last.completions.length < groupSize;
    const group = fits && last ? last : { prompt, completions: [] };
    if (group !== last) groups.push(group);
    group.completions.push({
      tokens: full.slice(begin + 1),
      weights: weights.slice(begin),
      advantage,
      ...(logprobs && { oldLogprobs: logprobs.slice(begin) }),
    });
    return { p: groups.length - 1, g: group.completions.length - 1, begin };
  });
  return {
    groups,
    rows: (logprobs) =>
      places.map(({ p, g, begin }) => [...new Array<number>(begin).fill(0), ...(logprobs[p]?.[g] ?? [])]),
  };
}

/** The loss of a request, by the names and ratio bounds of the protocol. */
export function servedLoss(lossFn: string, config: Readonly<Record<string, number>>): Loss {
  switch (lossFn) {
    case "cross_entropy":
      return { kind: "cross-entropy" };
    case "importance_sampling":
      return { kind: "clipped-surrogate", clipLow: 1, clipHigh: 1e6 };
    case "ppo": {
      const { clip_low_threshold: low = 0.8, clip_high_threshold: high = 1.2 } = config;
      return { kind: "clipped-surrogate", clipLow: 1 - low, clipHigh: high - 1 };
    }
    default:
      throw new Error(`unknown loss ${lossFn}`);
  }
}

/** Limits of the engine as a client sees them: the answer's first token counts to the prompt. */
export function servedLimits({ maxPrompt, maxCompletion, groupSize }: ModelShape): TrainingEngine["limits"] {
  return { maxPrompt: maxPrompt + 1, maxCompletion, groupSize };
}
