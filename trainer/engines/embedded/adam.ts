import type { OptimizerSettings } from "../engine.ts";

/** Moments and step count of AdamW over one flat vector. */
export interface AdamState {
  readonly first: Float32Array;
  readonly second: Float32Array;
  steps: number;
}

export function freshAdam(size: number): AdamState {
  return { first: new Float32Array(size), second: new Float32Array(size), steps: 0 };
}

/** Euclidean norm, summed in double precision in a fixed order. */
export function norm(vector: Float32Array): number {
  let sum = 0;
  for (const x of vector) sum += x * x;
  return Math.sqrt(sum);
}

/**
 * One AdamW update in place, as torch.optim.AdamW computes it: decoupled weight decay, bias-corrected moments, ε outside the root.
 * The gradient is first scaled down to `maxGradNorm` as by torch.nn.utils.clip_grad_norm_.
 *
 * @param gradNorm norm of the gradient, finite
 */
export function adamStep(
  weights: Float32Array,
  gradient: Float32Array,
  gradNorm: number,
  state: AdamState,
  settings: OptimizerSettings,
): void {
  const { learningRate, beta1, beta2, epsilon, weightDecay, maxGradNorm } = settings;
  const { first, second } = state;
  state.steps += 1;
  const scale = Math.min(1, maxGradNorm / (gradNorm + 1e-6));
  const stepSize = learningRate / (1 - beta1 ** state.steps);
  const secondCorrection = Math.sqrt(1 - beta2 ** state.steps);
  const kept = 1 - learningRate * weightDecay;
  for (let i = 0; i < weights.length; i += 1) {
    const g = (gradient[i] ?? 0) * scale;
    const m = Math.fround(beta1 * (first[i] ?? 0) + (1 - beta1) * g);
    const v = Math.fround(beta2 * (second[i] ?? 0) + (1 - beta2) * g * g);
    first[i] = m;
    second[i] = v;
    weights[i] = (weights[i] ?? 0) * kept - (stepSize * m) / (Math.sqrt(v) / secondCorrection + epsilon);
  }
}
