import { RootstepError } from "../../src/errors.ts";
import { stream } from "../../src/random.ts";
import { type Trajectory, trajectorySchema } from "../../src/trajectory/schema.ts";
import type {
  Completion,
  EngineState,
  Loss,
  OptimizerSettings,
  SampleRequest,
  TracerCodec,
  TrainingEngine,
  TrainingGroup,
} from "../../trainer/engines/engine.ts";

/**
 * A real, tiny policy with exact gradients: one softmax per (prompt row, position). Its words are two agents, three
 * steps and an end token; `agent step end` decodes to the tracer's format, anything else to text the gate refuses.
 */
const WORDS: readonly string[] = ["<end>", "planner", "solver", "0", "1", "2"];
const END = 0;
const ROWS = 3;
const POSITIONS = 3;
const V = WORDS.length;
const SIZE = ROWS * POSITIONS * V;

export const tabularCodec: TracerCodec = {
  id: "tabular",
  encodePrompt: (trajectory) => {
    const row = trajectory.steps.findIndex((step) => step.content.includes("fault"));
    if (row < 0 || row >= ROWS) throw new RootstepError("VOCABULARY", { what: "no fault in steps 0–2" });
    return [row];
  },
  decodeCompletion: (tokens) => {
    const words = tokens.map((token) => WORDS[token]);
    if (words.at(-1) === "<end>") words.pop();
    const [agent, step] = words;
    return words.length === 2
      ? `<think></think><answer>${agent} | ${step}</answer>`
      : `<think></think>${words.join(" ")}`;
  },
};

/** A failed run whose fault is plain to see at the step; planner and solver take turns. */
export function faultyRun(id: string, step: number, more: Partial<Trajectory> = {}): Trajectory {
  const agents = ["planner", "solver", "planner"];
  return {
    ...trajectorySchema.parse({
      schemaVersion: 1,
      id,
      task: { id: `task-${id}`, text: "2 + 2", source: "test", groupId: `group-${id}` },
      system: "test",
      stepPolicy: "per-call",
      steps: agents.map((agent, index) => ({ index, agent, content: index === step ? "fault" : "fine" })),
      outcome: { success: false, checker: "test" },
      labels: [{ agent: agents[step] ?? "planner", step, source: "injection" }],
      provenance: { kind: "injected", simulated: true },
    }),
    ...more,
  };
}

/** The tokens a labelled run should get. */
export function tabularTarget(_: Trajectory, label: { readonly agent: string; readonly step: number }): number[] {
  return [label.agent, String(label.step)].map((word) => WORDS.indexOf(word)).concat(END);
}

/** @param lean added to the logits of well-formed answers at the start */
export function createTabularEngine(lean = 2): TrainingEngine {
  let theta = startingWeights(lean);
  let gradient = new Float64Array(SIZE);
  let adam = { t: 0, m: new Float64Array(SIZE), v: new Float64Array(SIZE) };

  const distribution = (prompt: readonly number[], position: number) => distributionOf(theta, prompt, position);
  const logprobsOf = (groups: readonly TrainingGroup[]) =>
    groups.map(({ prompt, completions }) =>
      completions.map(({ tokens }) => tokens.map((token, t) => distribution(prompt, t).logprobs[token] ?? Number.NaN)),
    );

  return {
    id: "tabular",
    codec: { ...tabularCodec, encodeCompletion: tabularTarget },
    limits: { maxPrompt: 1, maxCompletion: POSITIONS, groupSize: 64 },
    sample: async (request) => sampleWith(theta, request),
    frozenSampler: async () => {
      const frozen = theta.slice();
      return { id: "tabular", sample: async (request) => sampleWith(frozen, request) };
    },
    forward: async (groups) => logprobsOf(groups),
    forwardBackward: async (groups, loss) => {
      let total = 0;
      for (const { prompt, completions } of groups) {
        for (const { tokens, weights, advantage, oldLogprobs } of completions) {
          for (const [t, token] of tokens.entries()) {
            const { offset, logprobs } = distribution(prompt, t);
            const weight = weights[t] ?? 0;
            const { value, slope } = objective(loss, logprobs[token] ?? 0, oldLogprobs?.[t] ?? 0, advantage);
            total -= weight * value;
            logprobs.forEach((logprob, v) => {
              gradient[offset + v]! -= weight * slope * ((v === token ? 1 : 0) - Math.exp(logprob));
            });
          }
        }
      }
      return { loss: total, logprobs: logprobsOf(groups) };
    },
    optimStep: async (settings) => {
      const gradNorm = Math.hypot(...gradient);
      if (!Number.isFinite(gradNorm)) throw new RootstepError("ENGINE_NAN", { what: "gradient norm is not finite" });
      adamStep(theta, gradient, adam, settings, Math.min(1, settings.maxGradNorm / gradNorm));
      gradient = new Float64Array(SIZE);
      return { gradNorm };
    },
    exportState: async (): Promise<EngineState> => ({
      weights: doublesToBytes(theta),
      optimizer: doublesToBytes([adam.t, ...adam.m, ...adam.v]),
    }),
    importState: async ({ weights, optimizer }) => {
      theta = Float64Array.from(bytesToDoubles(weights));
      gradient = new Float64Array(SIZE);
      const moments = optimizer === undefined ? new Float64Array(1 + 2 * SIZE) : bytesToDoubles(optimizer);
      adam = { t: moments[0] ?? 0, m: moments.slice(1, 1 + SIZE), v: moments.slice(1 + SIZE) };
    },
    close: async () => {},
  };
}

function distributionOf(theta: Float64Array, prompt: readonly number[], position: number) {
  const offset = ((prompt[0] ?? 0) * POSITIONS + position) * V;
  const logits = theta.subarray(offset, offset + V);
  const max = Math.max(...logits);
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - max), 0);
  const logprobs = Array.from(logits, (logit) => logit - max - Math.log(total));
  return { offset, logprobs };
}

function sampleWith(theta: Float64Array, { prompts, n, temperature, seed }: SampleRequest): Completion[][] {
  return prompts.map((prompt, p) =>
    Array.from({ length: n }, (_, g): Completion => {
      const random = stream(seed, p, g);
      const tokens: number[] = [];
      const logprobs: number[] = [];
      while (tokens.length < POSITIONS && tokens.at(-1) !== END) {
        const row = distributionOf(theta, prompt, tokens.length).logprobs;
        const token = temperature === 0 ? row.indexOf(Math.max(...row)) : draw(row, random.next());
        tokens.push(token);
        logprobs.push(row[token] ?? Number.NaN);
      }
      return { tokens, logprobs, finishReason: tokens.at(-1) === END ? "stop" : "length" };
    }),
  );
}

function startingWeights(lean: number): Float64Array<ArrayBuffer> {
  const theta = new Float64Array(SIZE);
  const wellFormed = [[1, 2], [3, 4, 5], [END]];
  for (let row = 0; row < ROWS; row++) {
    wellFormed.forEach((tokens, t) => {
      for (const token of tokens) theta[(row * POSITIONS + t) * V + token] = lean;
    });
  }
  return theta;
}

function draw(logprobs: readonly number[], u: number): number {
  let rest = u;
  for (const [token, logprob] of logprobs.entries()) {
    rest -= Math.exp(logprob);
    if (rest <= 0) return token;
  }
  return logprobs.length - 1;
}

/** Value of a token's objective and its derivative by the log-probability. */
function objective(loss: Loss, logprob: number, old: number, A: number): { value: number; slope: number } {
  if (loss.kind === "cross-entropy") return { value: logprob, slope: 1 };
  const r = Math.exp(logprob - old);
  const bounded = Math.min(Math.max(r, 1 - loss.clipLow), 1 + loss.clipHigh);
  return r * A <= bounded * A ? { value: r * A, slope: r * A } : { value: bounded * A, slope: 0 };
}

function adamStep(
  theta: Float64Array,
  gradient: Float64Array,
  adam: { t: number; m: Float64Array; v: Float64Array },
  settings: OptimizerSettings,
  scale: number,
): void {
  const { beta1, beta2, epsilon, learningRate, weightDecay } = settings;
  adam.t++;
  for (let i = 0; i < SIZE; i++) {
    const g = gradient[i]! * scale;
    adam.m[i] = beta1 * adam.m[i]! + (1 - beta1) * g;
    adam.v[i] = beta2 * adam.v[i]! + (1 - beta2) * g * g;
    const step = adam.m[i]! / (1 - beta1 ** adam.t) / (Math.sqrt(adam.v[i]! / (1 - beta2 ** adam.t)) + epsilon);
    theta[i] = theta[i]! - learningRate * (step + weightDecay * theta[i]!);
  }
}

export function doublesToBytes(values: ArrayLike<number>): Uint8Array {
  return new Uint8Array(Float64Array.from(values).buffer);
}

export function bytesToDoubles(bytes: Uint8Array): Float64Array<ArrayBuffer> {
  return new Float64Array(Uint8Array.from(bytes).buffer);
}
