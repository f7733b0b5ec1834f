import { describe, expect, it } from "vitest";
import { RootstepError } from "../../src/errors.ts";
import { trainConfigSchema } from "../../trainer/config.ts";
import { buildExamples, dataHash, drawExamples, splitByGroup, teachingLabel } from "../../trainer/dataset.ts";
import { planTraining } from "../../trainer/plan.ts";
import { faultyRun, tabularCodec } from "./tabular-engine.ts";

const options = { labels: ["earliest-confirmed", "injection"], maxPrompt: 1, withReference: true } as const;
const runs = (n: number) => Array.from({ length: n }, (_, i) => faultyRun(`run-${i}`, i % 3));

describe("training examples", () => {
  it("hold the trajectory, the label that counts and the prompt", () => {
    const { examples, refused } = buildExamples(runs(3), tabularCodec, options);
    expect(refused).toEqual([]);
    expect(examples.map(({ label, prompt }) => [label.agent, label.step, prompt])).toEqual([
      ["planner", 0, [0]],
      ["solver", 1, [1]],
      ["planner", 2, [2]],
    ]);
  });

  it("take the first kind of label in the order of preference", () => {
    const human = { agent: "solver", step: 1, source: "human" } as const;
    const confirmed = {
      agent: "planner",
      step: 2,
      source: "counterfactual",
      verdict: "earliest-confirmed",
    } as const;
    const run = faultyRun("run", 0, { labels: [human, confirmed] });
    expect(teachingLabel(run, ["earliest-confirmed", "human"])).toBe(confirmed);
    expect(teachingLabel(run, ["human", "earliest-confirmed"])).toBe(human);
    expect(teachingLabel(run, ["injection"])).toBeUndefined();
  });

  it("list every refused record with its reason", () => {
    const broken = [
      faultyRun("succeeded", 0, { outcome: { success: true, checker: "test" } }),
      faultyRun("unlabelled", 0, { labels: [] }),
      faultyRun("undecided", 0, {
        labels: [{ agent: "planner", step: 0, source: "counterfactual", verdict: "undecided" }],
      }),
      faultyRun("outside", 0, { labels: [{ agent: "planner", step: 9, source: "injection" }] }),
      faultyRun("unwritable", 7, { labels: [{ agent: "planner", step: 0, source: "injection" }] }),
    ];
    const data = buildExamples([...broken, faultyRun("good", 1)], tabularCodec, options);
    expect(data.examples.map(({ trajectory }) => trajectory.id)).toEqual(["good"]);
    expect(data.refused.map(({ id, reason }) => [id, reason])).toEqual([
      ["succeeded", "run-succeeded"],
      ["unlabelled", "no-label"],
      ["undecided", "no-label"],
      ["outside", "inconsistent"],
      ["unwritable", "vocabulary"],
    ]);
    expect(data.refusedCounts).toEqual({ "run-succeeded": 1, "no-label": 2, inconsistent: 1, vocabulary: 1 });
    expect(buildExamples(runs(2), tabularCodec, { ...options, maxPrompt: 0 }).refusedCounts).toEqual({
      "prompt-too-long": 2,
    });
  });

  it("pass on a codec's error that is not about its vocabulary", () => {
    const failing = {
      ...tabularCodec,
      encodePrompt: () => {
        throw new RootstepError("INTERNAL", { what: "broken codec" });
      },
    };
    expect(() => buildExamples(runs(1), failing, options)).toThrow("broken codec");
  });

  it("show the codec no label, and the reference answer only with G", () => {
    const seen: unknown[] = [];
    const spy = {
      ...tabularCodec,
      encodePrompt: (trajectory: Parameters<typeof tabularCodec.encodePrompt>[0]) => {
        seen.push([trajectory.labels, trajectory.task.referenceAnswer]);
        return [0];
      },
    };
    const task = { id: "t", text: "?", source: "test", groupId: "g", referenceAnswer: "4" };
    buildExamples([faultyRun("run", 0, { task })], spy, options);
    buildExamples([faultyRun("run", 0, { task })], spy, { ...options, withReference: false });
    expect(seen).toEqual([
      [[], "4"],
      [[], undefined],
    ]);
  });
});

describe("the order of examples", () => {
  const { examples } = buildExamples(runs(10), tabularCodec, options);
  const ids = (draw: { seed: number; position: number; n: number }) =>
    drawExamples(examples, draw).map(({ trajectory }) => trajectory.id);

  it("shows each example once per epoch, in another order each time", () => {
    const first = ids({ seed: 1, position: 0, n: 10 });
    const second = ids({ seed: 1, position: 10, n: 10 });
    expect(new Set(first).size).toBe(10);
    expect(new Set(second)).toEqual(new Set(first));
    expect(second).not.toEqual(first);
    expect(ids({ seed: 2, position: 0, n: 10 })).not.toEqual(first);
  });

  it("depends on the position alone, not on how the draws were cut", () => {
    const whole = ids({ seed: 1, position: 0, n: 25 });
    const parts = [0, 7, 14, 21].flatMap((position) => ids({ seed: 1, position, n: Math.min(7, 25 - position) }));
    expect(parts).toEqual(whole);
  });

  it("has a hash that changes with any example", () => {
    expect(dataHash(examples, [])).toBe(dataHash([...examples], []));
    expect(dataHash(examples, [])).not.toBe(dataHash(examples.slice(1), examples.slice(0, 1)));
  });

  it("splits by task group, and a group keeps its side when others are added", () => {
    const some = buildExamples(runs(200), tabularCodec, options).examples;
    const split = splitByGroup(some, { heldOutFraction: 0.1, seed: 1 });
    const held = new Set(split.heldOut.map(({ trajectory }) => trajectory.task.groupId));
    expect(split.train.some(({ trajectory }) => held.has(trajectory.task.groupId))).toBe(false);
    expect(split.heldOut.length).toBeGreaterThan(5);
    expect(split.heldOut.length).toBeLessThan(40);
    const fewer = splitByGroup(some.slice(0, 100), { heldOutFraction: 0.1, seed: 1 });
    expect(fewer.heldOut.every(({ trajectory }) => held.has(trajectory.task.groupId))).toBe(true);
  });
});

describe("the training configuration", () => {
  it("has the paper's values and documented defaults, and requires the number of steps", () => {
    expect(trainConfigSchema.parse({ steps: 10 })).toMatchObject({
      B0: 0.2,
      groupSize: 8,
      promptsPerStep: 32,
      learningRate: 1e-6,
      lambda: 0.5,
      sigma: 1,
      temperature: 1,
      topP: 1,
    });
    expect(trainConfigSchema.safeParse({}).success).toBe(false);
  });

  it("refuses truncated sampling and other temperatures, saying why", () => {
    const messages = (extra: object) =>
      trainConfigSchema.safeParse({ steps: 1, ...extra }).error?.issues.map(({ message }) => message);
    expect(messages({ topP: 0.9 })).toEqual([expect.stringContaining("biases every ratio")]);
    expect(messages({ temperature: 0.7 })).toEqual([expect.stringContaining("temperature 1")]);
    expect(messages({ klWeight: 0.1 })).toHaveLength(1);
  });
});

describe("the plan of a run", () => {
  const { examples } = buildExamples(runs(12), tabularCodec, options);
  const limits = { maxPrompt: 1, maxCompletion: 3, groupSize: 8 };
  const plan = (config: object, heldOut = examples.slice(0, 2)) =>
    planTraining(trainConfigSchema.parse({ steps: 50, promptsPerStep: 4, ...config }), { examples, heldOut }, limits);

  it("counts rollouts, tokens, updates and epochs", () => {
    const { rollouts, tokens, updates, epochs, evaluationRollouts, checkpoints } = plan({ groupSize: 8 });
    expect(rollouts).toEqual({ expected: 1600, high: 1600 });
    // Evaluations at 0, 20, 40 and 50 steps of two runs each; a prompt is one token, a completion at most three.
    expect(evaluationRollouts).toBe(8);
    expect(tokens).toEqual({ prompt: 208, completionAtMost: 4824 });
    expect(updates).toBe(100);
    expect(epochs).toBeCloseTo(200 / 12, 9);
    expect(checkpoints).toBe(4);
  });

  it("counts the rounds of resampling in the high estimate", () => {
    expect(plan({ deadGroups: "resample", resampleRounds: 2 }).rollouts).toEqual({ expected: 1600, high: 4800 });
  });

  it("warns where the clip can never act", () => {
    const warned = expect.arrayContaining([expect.stringContaining("clip can never act")]);
    expect(plan({ minibatches: 1 }).warnings).toEqual(warned);
    expect(plan({ minibatches: 1, epochsPerBatch: 2 }).warnings).toEqual([]);
    expect(plan({ minibatches: 2 }).warnings).toEqual([]);
    expect(plan({ minibatches: 8, promptsPerStep: 1 }).warnings).toEqual(warned);
  });

  it("warns about batches larger than the data, a missing held-out split and groups too large for the engine", () => {
    expect(plan({ promptsPerStep: 13 }).warnings).toEqual([expect.stringContaining("twice")]);
    expect(plan({}, []).warnings).toEqual([expect.stringContaining("held-out")]);
    expect(plan({ groupSize: 9 }).warnings).toEqual([expect.stringContaining("above the engine's 8")]);
  });
});
