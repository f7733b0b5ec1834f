import { RootstepError } from "../../../src/errors.ts";
import { type RandomStream, stream } from "../../../src/random.ts";
import type { Completion, SampleRequest } from "../engine.ts";
import { floats, type Graphs, integers } from "./graphs.ts";
import type { ModelShape } from "./manifest.ts";
import { TOKEN } from "./vocabulary.ts";

/** Prompts decoded together; what is sampled does not depend on it. */
export interface DecodeBatch {
  readonly prompts: readonly (readonly number[])[];
  /** Position of the first prompt in the request: names the random streams. */
  readonly offset: number;
}

interface Row {
  readonly tokens: number[];
  readonly logprobs: number[];
  readonly random: RandomStream;
  done: boolean;
}

/**
 * Samples n completions for each prompt of a batch: one prefill, then one decode per token over all rows.
 *
 * Completion k of prompt i draws from the stream (seed, "prompt", i, "completion", k) alone, one number per token.
 * @throws RootstepError INTERRUPTED, ENGINE_NAN
 */
export async function decodeBatch(
  graphs: Graphs,
  model: ModelShape,
  weights: Float32Array,
  batch: DecodeBatch,
  request: SampleRequest,
): Promise<Completion[][]> {
  const { maxPrompt: T, maxCompletion: G, vocabulary: V } = model;
  // The decode graphs take 1 or groupSize rows per prompt; rows beyond n are computed and dropped.
  const n = request.n === 1 ? 1 : model.groupSize;
  // onnxruntime multiplies a single row by another routine with other rounding: a lone row gets an idle companion.
  const P = Math.max(batch.prompts.length, n === 1 ? 2 : 1);
  const flat = floats(weights, [weights.length]);
  const prompt = new Int32Array(P * T);
  const lengths = new Int32Array(P).fill(1);
  batch.prompts.forEach((tokens, p) => {
    prompt.set(tokens, p * T);
    lengths[p] = tokens.length;
  });
  const prompt_length = integers(lengths, [P]);
  const prefill = await graphs.run("prefill", { flat, prompt: integers(prompt, [P, T]), prompt_length });
  const promptCache = [model.layers, P, model.heads, T, model.width / model.heads];
  const prompt_keys = floats(prefill("prompt_keys"), promptCache);
  const prompt_values = floats(prefill("prompt_values"), promptCache);
  const cache = createCache(model, P, n);
  const rows = Array.from({ length: P * n }, (_, row) => {
    const p = Math.floor(row / n);
    const k = row % n;
    const wanted = p < batch.prompts.length && k < request.n;
    return createRow(stream(request.seed, "prompt", batch.offset + p, "completion", k), wanted);
  });
  const token = new Int32Array(P * n).fill(TOKEN.begin);
  for (let step = 0; step < G && rows.some((row) => !row.done); step += 1) {
    if (request.signal?.aborted) {
      throw new RootstepError("INTERRUPTED", { what: "sampling was interrupted", cause: request.signal.reason });
    }
    const outputs = await graphs.run(n === 1 ? "decode1" : "decode", {
      flat,
      token: integers(token, [P, n]),
      step: integers(Int32Array.of(step), []),
      prompt_length,
      prompt_keys,
      prompt_values,
      own_keys: floats(cache.keys, cache.dims),
      own_values: floats(cache.values, cache.dims),
    });
    cache.write(step, outputs("new_keys"), outputs("new_values"));
    const logits = outputs("logits");
    rows.forEach((row, r) => {
      if (row.done) return;
      const choice = chooseToken(logits.subarray(r * V, (r + 1) * V), request.temperature, row.random);
      row.tokens.push(choice.token);
      row.logprobs.push(choice.logprob);
      row.done = choice.token === TOKEN.end;
      token[r] = choice.token;
    });
  }
  return batch.prompts.map((_, p) =>
    rows.slice(p * n, p * n + request.n).map(({ tokens, logprobs, done }) => ({
      tokens,
      logprobs,
      finishReason: done ? "stop" : "length",
    })),
  );
}

function createRow(random: RandomStream, wanted: boolean): Row {
  return { tokens: [], logprobs: [], random, done: !wanted };
}

/** Keys and values of the sampled tokens, [L,P,H,n,G,D]; the graph returns one position, which is written in place. */
function createCache(model: ModelShape, P: number, n: number) {
  const D = model.width / model.heads;
  const G = model.maxCompletion;
  const lanes = model.layers * P * model.heads * n;
  const keys = new Float32Array(lanes * G * D);
  const values = new Float32Array(lanes * G * D);
  return {
    keys,
    values,
    dims: [model.layers, P, model.heads, n, G, D],
    write: (step: number, newKeys: Float32Array, newValues: Float32Array) => {
      for (let lane = 0; lane < lanes; lane += 1) {
        const to = (lane * G + step) * D;
        keys.set(newKeys.subarray(lane * D, (lane + 1) * D), to);
        values.set(newValues.subarray(lane * D, (lane + 1) * D), to);
      }
    },
  };
}

/** One token at a temperature (0: the most likely one), and its log-probability at temperature 1. */
function chooseToken(
  logits: Float32Array,
  temperature: number,
  random: RandomStream,
): { readonly token: number; readonly logprob: number } {
  let best = 0;
  let top = Number.NEGATIVE_INFINITY;
  logits.forEach((logit, v) => {
    if (logit > top) {
      top = logit;
      best = v;
    }
  });
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0);
  if (!Number.isFinite(total)) throw new RootstepError("ENGINE_NAN", { what: "the policy's logits are not finite" });
  const token = temperature === 0 ? best : draw(logits, top, temperature, random);
  return { token, logprob: (logits[token] ?? top) - top - Math.log(total) };
}

function draw(logits: Float32Array, top: number, temperature: number, random: RandomStream): number {
  const mass = logits.reduce((sum, logit) => sum + Math.exp((logit - top) / temperature), 0);
  let left = random.next() * mass;
  for (let v = 0; v < logits.length; v += 1) {
    left -= Math.exp(((logits[v] ?? top) - top) / temperature);
    if (left < 0) return v;
  }
  return logits.length - 1; // only rounding leaves a rest
}
