import { stream } from "../../src/random.ts";
import { type ModelShape, parameterCount } from "../../trainer/engines/embedded/manifest.ts";
import { MAX_VALUE, OPERATORS, operationWord, tokenOf } from "../../trainer/engines/embedded/vocabulary.ts";

/**
 * Random weights to start from: norms 1, biases 0, matrices normal with variance 1/fan-in, those that write to the residual stream
 * smaller by √(2·layers). The embedding of a number begins as the sum of a tens vector and a ones vector, that of an operation as
 * an operator vector plus its operand's: place value is a prior that training may leave.
 */
export function initialWeights(model: ModelShape, seed: number): Float32Array {
  const weights = new Float32Array(parameterCount(model));
  let offset = 0;
  for (const { name, shape } of model.parameters) {
    const size = shape.reduce((a, b) => a * b, 1);
    const part = weights.subarray(offset, offset + size);
    offset += size;
    fill(part, name, shape[0] ?? 1, model, seed);
    if (name === "embedding") composeNumbers(part, model.width, seed);
  }
  return weights;
}

function fill(part: Float32Array, name: string, fanIn: number, model: ModelShape, seed: number): void {
  if (name.includes("norm")) {
    part.fill(1);
    return;
  }
  if (name.includes("bias")) return;
  const random = stream(seed, "initial weights", name);
  const deviation = deviationOf(name, fanIn, model);
  for (let i = 0; i < part.length; i += 1) part[i] = random.normal() * deviation;
}

function deviationOf(name: string, fanIn: number, model: ModelShape): number {
  if (name === "embedding") return 1 / Math.sqrt(model.width);
  if (name === "position") return 0.5 / Math.sqrt(model.width);
  return (name.includes("_out") ? 1 / Math.sqrt(2 * model.layers) : 1) / Math.sqrt(fanIn);
}

/** Writes the composed rows over a normal embedding, a fifth of which stays as noise. */
function composeNumbers(embedding: Float32Array, width: number, seed: number): void {
  const random = stream(seed, "initial weights", "place values");
  const vector = () => Float32Array.from({ length: width }, () => (random.normal() * 0.7) / Math.sqrt(width));
  const digits = Array.from({ length: 10 }, () => ({ tens: vector(), ones: vector() }));
  const compose = (word: string, number: number, operator?: Float32Array) => {
    const row = tokenOf(word);
    const tens = digits[Math.floor(number / 10)]?.tens;
    const ones = digits[number % 10]?.ones;
    if (row === undefined || tens === undefined || ones === undefined) return;
    for (let j = 0; j < width; j += 1) {
      const noise = 0.2 * (embedding[row * width + j] ?? 0);
      embedding[row * width + j] = (tens[j] ?? 0) + (ones[j] ?? 0) + (operator?.[j] ?? 0) + noise;
    }
  };
  for (let value = 0; value <= MAX_VALUE; value += 1) compose(String(value), value);
  for (const operator of OPERATORS) {
    const own = vector();
    for (let operand = 1; operand <= 22; operand += 1) compose(operationWord({ operator, operand }), operand, own);
  }
}
