import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stream } from "../../src/random.ts";
import type {
  EngineState,
  Loss,
  OptimizerSettings,
  TrainingEngine,
  TrainingGroup,
} from "../../trainer/engines/engine.ts";

export interface EngineUnderTest {
  open(): Promise<TrainingEngine>;
  /** Prompts the engine takes; at least two. */
  readonly prompts: readonly (readonly number[])[];
  readWeights(state: EngineState): ArrayLike<number>;
  writeWeights(weights: ArrayLike<number>): EngineState;
  /** Allowed difference of two log-probabilities of one token, and relative difference of two gradients. */
  readonly tolerance: { readonly logprob: number; readonly gradient: number };
  /** Length of the step of finite differences. */
  readonly differenceStep: number;
  /** What a state holds, where it only refers to it; the state itself by default. */
  readonly contents?: (state: EngineState) => EngineState;
  /** What the engine declares it cannot do: the tests then hold it to that. Everything by default. */
  readonly cannot?: readonly ("accumulate over calls" | "clip the gradient")[];
}

const GROUP = 4;
const CROSS_ENTROPY: Loss = { kind: "cross-entropy" };
const CLIPPED: Loss = { kind: "clipped-surrogate", clipLow: 0.1, clipHigh: 0.2 };
/** Differences new − old log-probability; none lies near a bound of the clip, where the loss has a kink. */
const SHIFTS = [-0.4, -0.03, 0.03, 0.4];

const ADAM: OptimizerSettings = {
  learningRate: 0.01,
  beta1: 0.9,
  beta2: 0.99,
  epsilon: 1e-8,
  weightDecay: 0,
  maxGradNorm: 1e9,
};
/** Adam without memory and with a huge ε moves weights by −gradient, so that the gradient can be read from outside. */
const READ_GRADIENT: OptimizerSettings = { ...ADAM, learningRate: 1e6, beta1: 0, beta2: 0, epsilon: 1e6 };

/** What every training engine must do, whatever it is made of; gradients are checked through the interface alone. */
export function engineConformance(name: string, subject: EngineUnderTest): void {
  describe(`${name} as a training engine`, () => {
    let engine: TrainingEngine;
    let start: EngineState;
    /** Sampled groups whose old log-probabilities are shifted from the present ones. */
    let groups: TrainingGroup[];

    const cannot = new Set(subject.cannot);
    const contents = subject.contents ?? ((state: EngineState) => state);
    const fingerprint = (state: EngineState): string => hashOf(contents(state));
    const reset = () => engine.importState(start);
    const weightsOf = (state: EngineState) => Array.from(subject.readWeights(contents(state)));
    const weightsNow = async () => weightsOf(await engine.exportState());

    async function gradientOf(...calls: readonly (readonly [readonly TrainingGroup[], Loss])[]): Promise<number[]> {
      await reset();
      const before = await weightsNow();
      for (const [part, loss] of calls) await engine.forwardBackward(part, loss);
      await engine.optimStep(READ_GRADIENT);
      const after = await weightsNow();
      await reset();
      return before.map((weight, i) => weight - after[i]!);
    }

    async function lossAt(weights: readonly number[], loss: Loss): Promise<number> {
      await engine.importState(subject.writeWeights(weights));
      return weightedLoss(groups, await engine.forward(groups), loss);
    }

    beforeAll(async () => {
      engine = await subject.open();
      start = await engine.exportState();
      groups = await sampledGroups(engine, subject.prompts);
    });
    afterAll(() => engine.close());

    it("samples n completions per prompt with a log-probability for every token", async () => {
      const completions = await engine.sample({ prompts: subject.prompts, n: GROUP, temperature: 1, seed: "shape" });
      expect(completions.map((group) => group.length)).toEqual(subject.prompts.map(() => GROUP));
      for (const { tokens, logprobs } of completions.flat()) {
        expect(tokens.length).toBeGreaterThan(0);
        expect(tokens.length).toBeLessThanOrEqual(engine.limits.maxCompletion);
        expect(logprobs).toHaveLength(tokens.length);
      }
    });

    it("samples the same completions from the same stream, others from another", async () => {
      const request = { prompts: subject.prompts, n: GROUP, temperature: 1, seed: "one" };
      expect(await engine.sample(request)).toEqual(await engine.sample(request));
      expect(await engine.sample({ ...request, seed: "two" })).not.toEqual(await engine.sample(request));
    });

    it("takes the most likely token at temperature 0, whatever the stream", async () => {
      const ask = (seed: string) => engine.sample({ prompts: subject.prompts, n: 1, temperature: 0, seed });
      const greedy = await ask("a");
      expect(await ask("b")).toEqual(greedy);
      const sampled = await engine.sample({ prompts: subject.prompts, n: GROUP, temperature: 1, seed: "a" });
      sampled.forEach((group, p) => {
        for (const { logprobs } of group) {
          expect(logprobs[0]!).toBeLessThanOrEqual(greedy[p]![0]!.logprobs[0]! + subject.tolerance.logprob);
        }
      });
    });

    it("gives sampled tokens the same log-probabilities in sample, forward and forwardBackward", async () => {
      const completions = await engine.sample({ prompts: subject.prompts, n: GROUP, temperature: 1, seed: "parity" });
      const asked = subject.prompts.map((prompt, p) => ({
        prompt,
        completions: completions[p]!.map(({ tokens, logprobs }) => ({
          tokens,
          weights: tokens.map(() => 1),
          advantage: 1,
          oldLogprobs: logprobs,
        })),
      }));
      const sampled = completions.map((group) => group.map(({ logprobs }) => logprobs));
      const forward = await engine.forward(asked);
      expectClose(forward.flat(2), sampled.flat(2), subject.tolerance.logprob);
      const { logprobs } = await engine.forwardBackward(asked, CLIPPED);
      expectClose(logprobs.flat(2), sampled.flat(2), subject.tolerance.logprob);
      await reset();
    });

    it("returns minus the weighted objective as the loss", async () => {
      const logprobs = await engine.forward(groups);
      for (const loss of [CROSS_ENTROPY, CLIPPED]) {
        const result = await engine.forwardBackward(groups, loss);
        expect(result.loss).toBeCloseTo(weightedLoss(groups, logprobs, loss), 4);
        await reset();
      }
    });

    it("leaves weights and optimiser alone while it samples and computes log-probabilities", async () => {
      await engine.sample({ prompts: subject.prompts, n: 1, temperature: 1, seed: "x" });
      await engine.forward(groups);
      expect(fingerprint(await engine.exportState())).toBe(fingerprint(start));
    });

    for (const loss of [CROSS_ENTROPY, CLIPPED]) {
      it(`has the ${loss.kind} gradient that finite differences of forward give`, async () => {
        const gradient = await gradientOf([groups, loss]);
        const random = stream(7, "conformance");
        const half = gradient.map((g) => (random.chance(0.5) ? g : 0));
        for (const direction of [unit(gradient), unit(half)]) {
          const weights = weightsOf(start);
          const h = subject.differenceStep;
          const up = await lossAt(
            weights.map((w, i) => w + h * direction[i]!),
            loss,
          );
          const down = await lossAt(
            weights.map((w, i) => w - h * direction[i]!),
            loss,
          );
          await reset();
          const slope = dot(gradient, direction);
          expect(Math.abs((up - down) / (2 * h) - slope)).toBeLessThan(subject.tolerance.gradient * Math.abs(slope));
        }
      });
    }

    // d/dθ of r·A is A·r·∇logprob; beyond the bound on the side the advantage pushes to, the gradient is 0 (§4.2).
    for (const { A, ratio, factor } of [
      { A: 1.5, ratio: 1.1, factor: 1.65 },
      { A: -1.5, ratio: 0.95, factor: -1.425 },
      { A: 1.5, ratio: 1.3, factor: 0 },
      { A: -1.5, ratio: 1.3, factor: -1.95 },
      { A: 1.5, ratio: 0.8, factor: 1.2 },
      { A: -1.5, ratio: 0.8, factor: 0 },
    ]) {
      it(`at advantage ${A} and ratio ${ratio} has ${factor} times the gradient of the log-probability`, async () => {
        const { prompt, completions } = groups[0]!;
        const { tokens } = completions[0]!;
        const [logprobs] = (await engine.forward([{ prompt, completions: [completions[0]!] }]))[0]!;
        const one = {
          tokens,
          weights: tokens.map((_, t) => (t === 0 ? 1 : 0)),
          oldLogprobs: logprobs!.map((logprob) => logprob - Math.log(ratio)),
        };
        const clipped = await gradientOf([[{ prompt, completions: [{ ...one, advantage: A }] }], CLIPPED]);
        const plain = await gradientOf([[{ prompt, completions: [{ ...one, advantage: 1 }] }], CROSS_ENTROPY]);
        const difference = norm(clipped.map((g, i) => g - factor * plain[i]!));
        expect(difference).toBeLessThanOrEqual(subject.tolerance.gradient * norm(plain));
        if (factor === 0) expect(norm(clipped)).toBe(0);
      });
    }

    it("adds the gradients of groups in one call", async () => {
      const parts = groups.map((group) => [[group], CLIPPED] as const);
      const together = await gradientOf([groups, CLIPPED]);
      const alone: number[][] = [];
      for (const part of parts) alone.push(await gradientOf(part));
      const sum = together.map((_, i) => alone.reduce((total, gradient) => total + gradient[i]!, 0));
      const bound = subject.tolerance.gradient * norm(together);
      expect(norm(together.map((g, i) => g - sum[i]!))).toBeLessThan(bound);
    });

    if (cannot.has("accumulate over calls")) {
      it("refuses a second call before the optimiser step, which it cannot add to the first", async () => {
        await reset();
        await engine.forwardBackward(groups, CLIPPED);
        await expect(engine.forwardBackward(groups, CLIPPED)).rejects.toMatchObject({ code: "ENGINE_FAILED" });
        await reset();
      });
    } else {
      it("adds the gradients of several calls", async () => {
        const together = await gradientOf([groups, CLIPPED]);
        const inTurn = await gradientOf(...groups.map((group) => [[group], CLIPPED] as const));
        const difference = norm(together.map((g, i) => g - inTurn[i]!));
        expect(difference).toBeLessThan(subject.tolerance.gradient * norm(together));
      });
    }

    it("takes no gradient from tokens without weight", async () => {
      const masked = groups.map((group) => ({
        ...group,
        completions: group.completions.map((completion) => ({
          ...completion,
          weights: completion.weights.map(() => 0),
        })),
      }));
      expect(norm(await gradientOf([masked, CLIPPED]))).toBe(0);
    });

    it("clears the gradient with each optimiser step and reports its norm before clipping", async () => {
      const gradient = await gradientOf([groups, CLIPPED]);
      await engine.forwardBackward(groups, CLIPPED);
      const before = await weightsNow();
      const maxGradNorm = norm(gradient) / 10;
      const expected = cannot.has("clip the gradient") ? norm(gradient) : maxGradNorm;
      const { gradNorm } = await engine.optimStep({ ...READ_GRADIENT, maxGradNorm });
      const moved = (await weightsNow()).map((weight, i) => before[i]! - weight);
      expect(Math.abs(gradNorm / norm(gradient) - 1)).toBeLessThan(subject.tolerance.gradient);
      expect(Math.abs(norm(moved) / expected - 1)).toBeLessThan(subject.tolerance.gradient);
      expect((await engine.optimStep(READ_GRADIENT)).gradNorm).toBe(0);
      await reset();
    });

    it("takes Adam's first step: learning rate times the sign of the gradient", async () => {
      const gradient = await gradientOf([groups, CROSS_ENTROPY]);
      const before = await weightsNow();
      await engine.forwardBackward(groups, CROSS_ENTROPY);
      await engine.optimStep(ADAM);
      const after = await weightsNow();
      await reset();
      const large = norm(gradient) / Math.sqrt(gradient.length) / 10;
      const steps = gradient.flatMap((g, i) => (Math.abs(g) > large ? [(before[i]! - after[i]!) / Math.sign(g)] : []));
      expect(steps.length).toBeGreaterThan(0);
      const errors = steps.map((step) => Math.abs(step / ADAM.learningRate - 1));
      expect(errors.reduce((worst, error) => Math.max(worst, error), 0)).toBeLessThan(1e-3);
    });

    it("goes on from an exported state bit for bit", async () => {
      await reset();
      const train = async () => {
        await engine.forwardBackward(groups, CLIPPED);
        await engine.optimStep(ADAM);
      };
      await train();
      const saved = await engine.exportState();
      await train();
      const straight = await engine.exportState();
      await train();
      await engine.importState(saved);
      expect(fingerprint(await engine.exportState())).toBe(fingerprint(saved));
      await train();
      expect(fingerprint(await engine.exportState())).toBe(fingerprint(straight));
      await reset();
    });

    it("starts the optimiser afresh from weights alone, and drops a gradient that was under way", async () => {
      await reset();
      await engine.importState({ weights: start.weights });
      await engine.forwardBackward(groups, CLIPPED);
      await engine.optimStep(ADAM);
      const fresh = await engine.exportState();
      await engine.forwardBackward(groups, CLIPPED);
      await engine.importState({ weights: start.weights });
      await engine.forwardBackward(groups, CLIPPED);
      await engine.optimStep(ADAM);
      expect(fingerprint(await engine.exportState())).toBe(fingerprint(fresh));
      await reset();
    });

    it("hands out states that later updates do not change", async () => {
      await reset();
      const saved = await engine.exportState();
      const before = fingerprint(saved);
      await engine.forwardBackward(groups, CROSS_ENTROPY);
      await engine.optimStep(ADAM);
      expect(fingerprint(saved)).toBe(before);
      await reset();
    });
  });
}

async function sampledGroups(engine: TrainingEngine, prompts: EngineUnderTest["prompts"]): Promise<TrainingGroup[]> {
  const sampled = await engine.sample({ prompts, n: GROUP, temperature: 1, seed: "groups" });
  const tokens = sampled.flat().reduce((sum, completion) => sum + completion.tokens.length, 0);
  const plain = prompts.map((prompt, p) => ({
    prompt,
    completions: sampled[p]!.map((completion, g) => ({
      tokens: completion.tokens,
      weights: completion.tokens.map(() => 1 / tokens),
      advantage: [1, -0.5, 2, -1][g % 4]!,
    })),
  }));
  const logprobs = await engine.forward(plain);
  return plain.map((group, p) => ({
    ...group,
    completions: group.completions.map((completion, g) => ({
      ...completion,
      oldLogprobs: logprobs[p]![g]!.map((logprob, t) => logprob - SHIFTS[(p + g + t) % SHIFTS.length]!),
    })),
  }));
}

/** −Σ weight · objective, written from the definition. */
function weightedLoss(
  groups: readonly TrainingGroup[],
  logprobs: readonly (readonly (readonly number[])[])[],
  loss: Loss,
): number {
  let total = 0;
  groups.forEach(({ completions }, p) => {
    completions.forEach(({ tokens, weights, advantage, oldLogprobs }, g) => {
      tokens.forEach((_, t) => {
        const logprob = logprobs[p]![g]![t]!;
        if (loss.kind === "cross-entropy") {
          total -= weights[t]! * logprob;
          return;
        }
        const r = Math.exp(logprob - oldLogprobs![t]!);
        const clipped = Math.min(Math.max(r, 1 - loss.clipLow), 1 + loss.clipHigh);
        total -= weights[t]! * Math.min(r * advantage, clipped * advantage);
      });
    });
  });
  return total;
}

function hashOf({ weights, optimizer }: EngineState): string {
  const hash = createHash("sha256").update(weights).update("|");
  return hash.update(optimizer ?? "").digest("hex");
}

function expectClose(actual: readonly number[], expected: readonly number[], tolerance: number): void {
  expect(actual).toHaveLength(expected.length);
  actual.forEach((value, i) => {
    expect(Math.abs(value - expected[i]!)).toBeLessThanOrEqual(tolerance);
  });
}

const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
const norm = (a: readonly number[]): number => Math.sqrt(dot(a, a));
function unit(a: readonly number[]): number[] {
  const length = norm(a);
  return a.map((x) => x / length);
}
