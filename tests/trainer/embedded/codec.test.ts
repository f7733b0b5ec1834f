import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { drawFailedRun, imperfectLabel } from "../../../scripts/embedded/chains.ts";
import { stream } from "../../../src/random.ts";
import { parseTracerOutput } from "../../../src/reward/format-gate.ts";
import { type Trajectory, trajectorySchema } from "../../../src/trajectory/schema.ts";
import { parseChain } from "../../../trainer/engines/embedded/chain.ts";
import { embeddedCodec as codec } from "../../../trainer/engines/embedded/codec.ts";
import { tokenOf, VOCABULARY_SIZE, wordOf } from "../../../trainer/engines/embedded/vocabulary.ts";
import { failedRuns } from "./support.ts";

/** A run on GSM8K's first test problem (Janet's eggs): 16 − 3 − 4 = 9, 9 · 2 = 18; the solver carries a wrong 12. */
const EGGS = run(
  ["16 - 3", "previous - 4", "previous * 2"],
  [
    ["planner", "Plan 1: 16 - 3"],
    ["solver", "16 - 3 = 13"],
    ["planner", "Plan 2: previous - 4"],
    ["solver", "12 - 4 = 8"],
    ["verifier", "Checked: the current value is 8."],
    ["planner", "Plan 3: previous * 2 (last)"],
    ["solver", "8 * 2 = 16"],
    ["verifier", "Checked: the final answer is 16."],
  ],
);

function run(
  calculations: readonly unknown[],
  steps: readonly (readonly [agent: string, content: string])[],
): Trajectory {
  return trajectorySchema.parse({
    schemaVersion: 1,
    id: "eggs",
    task: { id: "t", text: "", source: "gsm8k", groupId: "t", extra: { calculations } },
    system: "planner-solver-verifier",
    stepPolicy: "per-call",
    steps: steps.map(([agent, content], index) => ({ index, agent, content })),
    outcome: { success: false, checker: "numeric" },
    provenance: { kind: "recorded" },
  });
}

/** The run with one step's text replaced. */
function withStep(index: number, content: string, agent = EGGS.steps[index]!.agent): Trajectory {
  return { ...EGGS, steps: EGGS.steps.map((step) => (step.index === index ? { ...step, agent, content } : step)) };
}

const tokens = (words: string) => words.split(" ").map((word) => tokenOf(word)!);

describe("prompt", () => {
  test("the reference solution, then who wrote what", () => {
    expect(codec.encodePrompt(EGGS).map(wordOf).join(" ")).toBe(
      "16 -3 -4 *2 @0 planner 16 -3 @1 solver 16 -3 13 @2 planner -4 @3 solver 12 -4 8 @4 verifier 8 @5 planner *2 @6 solver 8 *2 16 @7 verifier 16",
    );
  });

  test("GSM8K's marks say the same as the list of calculations", () => {
    const { extra: _, ...task } = EGGS.task;
    const solution = "She sells 16 - 3 - 4 = <<16-3-4=9>>9 eggs.\nShe makes 9 * 2 = $<<9*2=18>>18.\n#### 18";
    const marked = { ...EGGS, task: { ...task, referenceSolution: solution } };
    expect(codec.encodePrompt(marked)).toEqual(codec.encodePrompt(EGGS));
  });

  test("in GSM8K's marks the value before may stand second, and marks without an operation say nothing", () => {
    const reference = (solution: string, calculations: readonly string[]) => {
      const { extra: _, ...task } = EGGS.task;
      const steps = run(calculations, [
        ["planner", "Plan 1: 9 + 1"],
        ["solver", "9 + 1 = 10"],
        ["planner", "Plan 2: previous + 1"],
        ["solver", "10 + 1 = 11"],
        ["verifier", "Checked: the final answer is 11."],
      ]);
      const marked = codec.encodePrompt({ ...steps, task: { ...task, referenceSolution: solution } });
      expect(marked).toEqual(codec.encodePrompt(steps));
    };
    reference("<<2/2=1>>1 and <<2+1=3>>3 #### 3", ["2 / 2", "previous + 2"]); // gsm8k test 2
    reference("<<36=36>>36 <<18/2=9>>9 <<9+7=16>>16 <<16=16>>16 #### 16", ["18 / 2", "previous + 7"]); // after test 501
  });

  test("the mark of the last plan is read but has no token", () => {
    const last = EGGS.steps[5]!.content;
    expect(codec.encodePrompt(withStep(5, last.replace(" (last)", "")))).toEqual(codec.encodePrompt(EGGS));
  });

  test("the label cannot reach it", () => {
    const labelled: Trajectory = { ...EGGS, labels: [{ agent: "solver", step: 3, source: "injection" }] };
    expect(codec.encodePrompt(labelled)).toEqual(codec.encodePrompt(EGGS));
  });

  test("runs that differ in what was written have different prompts; every prompt fits", () => {
    const seen = new Map<string, string>();
    for (const { trajectory } of failedRuns("distinct", 2000)) {
      const prompt = codec.encodePrompt(trajectory);
      expect(prompt.length).toBeLessThanOrEqual(48);
      const text = trajectory.task.id + trajectory.steps.map((step) => step.content).join("\n");
      expect(seen.get(prompt.join()) ?? text).toBe(text);
      seen.set(prompt.join(), text);
    }
  });
});

describe("completion", () => {
  test("is the text of the format gate", () => {
    const completion = tokens("<think> @0 16 -3 @1 13 @2 -4 @3 9 bad </think> <answer> solver | @3 </answer> <eos>");
    expect(codec.decodeCompletion(completion)).toBe(
      "<think>0: 16 -3 1: 13 2: -4 3: 9 bad</think><answer>solver | 3</answer>",
    );
    expect(codec.encodeCompletion(EGGS, { agent: "solver", step: 3 })).toEqual(completion);
  });

  test("a teacher's answer for any label passes the gate and names the label", () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    console.info(`seed ${seed}`);
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom("train", "held-out"), (draw, split) => {
        const random = stream(draw, "teacher");
        const drawn = drawFailedRun(random, split as "train" | "held-out");
        const label = imperfectLabel(drawn, 0.36, random);
        const completion = codec.encodeCompletion(drawn.trajectory, label);
        expect(completion.length).toBeLessThanOrEqual(32);
        expect(completion.every((token) => token >= 0 && token < VOCABULARY_SIZE)).toBe(true);
        expect(parseTracerOutput(codec.decodeCompletion(completion))).toMatchObject({ ok: true, ...label });
      }),
      { seed, numRuns: 300 },
    );
  });

  test("a sequence that passes the gate has each tag once", () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    console.info(`seed ${seed}`);
    const good = tokens("<think> @0 16 -3 bad </think> <answer> planner | @0 </answer>");
    const token = fc.nat({ max: VOCABULARY_SIZE - 1 });
    const tags = tokens("<think> </think> <answer> </answer>");
    fc.assert(
      fc.property(
        fc.nat({ max: good.length }),
        fc.nat({ max: 3 }),
        fc.array(token, { maxLength: 3 }),
        (at, cut, put) => {
          const sequence = [...good.slice(0, at), ...put, ...good.slice(at + cut)];
          const parsed = parseTracerOutput(codec.decodeCompletion(sequence));
          if (!parsed.ok) return;
          for (const tag of tags) expect(sequence.filter((x) => x === tag)).toHaveLength(1);
        },
      ),
      { seed, numRuns: 2000 },
    );
  });

  test.each([
    [
      "without its end token",
      "<think> bad </think> <answer> solver | @3 </answer>",
      "<think>bad</think><answer>solver | 3</answer>",
    ],
    ["cut off", "<think> @0 16 -3 @1", "<think>0: 16 -3 1:"],
    ["with an end token inside", "<think> <eos> bad <eos>", "<think><eos>bad"],
    ["with two steps in the answer", "<answer> solver | @3 @4 </answer>", "<answer>solver | 3 4</answer>"],
    ["with a value in place of a step id", "<answer> solver | 13 </answer>", "<answer>solver | 13</answer>"],
    ["empty", "<eos>", ""],
  ])("%s reads as it stands", (_, words, text) => {
    expect(codec.decodeCompletion(tokens(words))).toBe(text);
  });

  test("a label that the run does not have is refused", () => {
    expect(() => codec.encodeCompletion(EGGS, { agent: "solver", step: 12 })).toThrow(/label names step 12/u);
    expect(() => codec.encodeCompletion(EGGS, { agent: "planner", step: 3 })).toThrow(/blames planner/u);
  });
});

describe("what does not fit is refused, naming the place", () => {
  const steps = EGGS.steps.map(({ agent, content }) => [agent, content] as const);
  test.each<[string, Trajectory, string]>([
    ["a value without a token", withStep(6, "8 * 9 = 72"), "step 6 (solver)"],
    ["a fraction", withStep(3, "13 / 4 = 3.25"), "step 3 (solver)"],
    ["a negative value", withStep(3, "3 - 4 = -1"), "step 3 (solver)"],
    ["an operand without a token", withStep(2, "Plan 2: previous - 40"), "step 2 (planner)"],
    ["a reference to an earlier result", withStep(2, "Plan 2: result 1 - 4"), "step 2 (planner)"],
    ["a plan with another number", withStep(2, "Plan 3: previous - 4"), "step 2 (planner)"],
    ["a literal where the value before belongs", withStep(2, "Plan 2: 13 - 4"), "step 2 (planner)"],
    ["another agent", withStep(4, "Checked: the current value is 8.", "critic"), "step 4 (critic)"],
    ["an agent out of turn", withStep(4, "8 * 2 = 16", "solver"), "step 4 (solver)"],
    ["other words", withStep(1, "The result is 13."), "step 1 (solver)"],
    ["a final answer in the middle", withStep(4, "Checked: the final answer is 8."), "step 4 (verifier)"],
    ["a run that ends early", { ...EGGS, steps: EGGS.steps.slice(0, 5) }, "step 5"],
    ["a run that goes on", run(["16 - 3"], steps), "step 2 (planner)"],
    ["more than four calculations", run(["16 - 3", ...Array(4).fill("previous - 1")], steps), "task"],
    ["a calculation on an earlier result", run(["16 - 3", "50 - previous"], steps), "task.extra.calculations[1]"],
    ["a calculation that goes past the values", run(["50 * 2"], steps), "task.extra.calculations[0]"],
    ["a decimal", run(["16 * 0.5"], steps), "task.extra.calculations[0]"],
    ["calculations that are no text", run([3], steps), "task.extra.calculations[0]"],
    [
      "marks that start anew",
      { ...EGGS, task: { ...EGGS.task, extra: {}, referenceSolution: "<<16-3=13>> <<5*2=10>>" } },
      "task.referenceSolution <<5*2=10>>",
    ],
    ["no reference at all", { ...EGGS, task: { ...EGGS.task, extra: {} } }, "task"],
  ])("%s", (_, trajectory, where) => {
    expect(() => codec.encodePrompt(trajectory)).toThrow(
      expect.objectContaining({ code: "VOCABULARY", where: `eggs, ${where}` }),
    );
  });
});

describe("generated runs", () => {
  test("parse to the grammar, err first at the decisive step, and never share a problem over the splits", () => {
    const keys = { train: new Set<string>(), "held-out": new Set<string>() };
    for (const split of ["train", "held-out"] as const) {
      for (const drawn of failedRuns("splits", 500, split)) {
        expect(trajectorySchema.safeParse(drawn.trajectory).success).toBe(true);
        const { steps } = parseChain(drawn.trajectory);
        expect(steps[drawn.decisive.step]?.agent).toBe(drawn.decisive.agent);
        keys[split].add(drawn.trajectory.task.id);
      }
    }
    expect([...keys.train].filter((key) => keys["held-out"].has(key))).toEqual([]);
  });

  test("imperfect labels are decisive, or later steps with their agents", () => {
    const random = stream("imperfect");
    const labels = failedRuns("imperfect", 3000).map((drawn) => ({
      drawn,
      label: imperfectLabel(drawn, 0.36, random),
    }));
    for (const { drawn, label } of labels) {
      expect(label.step).toBeGreaterThanOrEqual(drawn.decisive.step);
      expect(drawn.trajectory.steps[label.step]?.agent).toBe(label.agent);
    }
    const withLater = labels.filter(({ drawn }) => drawn.decisive.step < drawn.trajectory.steps.length - 1);
    const right = withLater.filter(({ drawn, label }) => label.step === drawn.decisive.step).length;
    expect(right / withLater.length).toBeCloseTo(0.36, 1);
  });
});
