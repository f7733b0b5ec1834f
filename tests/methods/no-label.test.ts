import { describe, expect, it } from "vitest";
import { type EvaluationItem, loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import { evaluate } from "../../src/evaluation/run.ts";
import type { ConfiguredMethod, TracerPolicy } from "../../src/methods/method.ts";
import { METHODS } from "../../src/methods/registry.ts";
import { methodView, viewAsTrajectory } from "../../src/methods/view.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { captureModel } from "./capture-model.ts";

const MARK = "SENTINEL-7f3a";
const REFERENCE = "REFERENCE-9c1d";

/** The run with a marker wherever a label, a verdict or a field unknown to the model can stand. */
function planted({ trajectory, ...item }: EvaluationItem): EvaluationItem {
  const extra = { ...trajectory.extra, mistake_agent: MARK, mistake_step: MARK, mistake_reason: MARK, labels: [MARK] };
  const marked: Trajectory = {
    ...trajectory,
    task: {
      ...trajectory.task,
      referenceAnswer: REFERENCE,
      referenceSolution: REFERENCE,
      extra: { ground_truth: MARK },
    },
    steps: trajectory.steps.map((step) => ({
      ...step,
      role: MARK,
      callIds: [MARK],
      startedAt: MARK,
      endedAt: MARK,
      usage: { promptTokens: 987654321, completionTokens: 987654321 },
      toolCalls: [{ id: MARK, name: "t", arguments: "{}", startedAt: MARK, extra: { injected: MARK } }],
      extra: { injected: MARK },
    })),
    outcome: { success: false, checker: MARK, answer: MARK, detail: MARK },
    labels: trajectory.labels.map((label) => ({
      ...label,
      agent: MARK,
      step: 987654321,
      reason: MARK,
      annotator: MARK,
      evidenceRef: MARK,
      createdAt: MARK,
      extra: { mark: MARK },
    })),
    provenance: { ...trajectory.provenance, model: MARK, seed: MARK, conversions: [MARK], extra: { mark: MARK } },
    extra,
  };
  return { ...item, label: { ...item.label, agent: MARK, step: 987654321, reason: MARK }, trajectory: marked };
}

const items = (await loadWhoAndWhen()).items.map(planted);

async function everythingSaid(method: ConfiguredMethod, withReference: boolean): Promise<string[]> {
  const model = captureModel(() => ({ content: "<think>x</think><answer>A | 0</answer>" }));
  const { predictions } = await evaluate({ items, method, withReference, context: { model, seed: 1 } });
  return [
    ...model.requests.flatMap(({ request, options }) => [JSON.stringify(request), JSON.stringify(options)]),
    ...predictions.map((prediction) => JSON.stringify(prediction)),
  ];
}

describe.each(METHODS.map((method) => [method.id, method] as const))("method %s", (_id, method) => {
  it("says nothing about labels, verdicts or the reference in any request without G", async () => {
    const said = await everythingSaid(method.configure(), false);
    expect(said.length).toBeGreaterThanOrEqual(items.length * (method.needs.model ? 3 : 1));
    for (const text of said) {
      expect(text.includes(MARK) || text.includes("987654321") || text.includes(REFERENCE)).toBe(false);
    }
  });

  it("says the reference with G, and still no label", async () => {
    const said = await everythingSaid(method.configure(), true);
    for (const text of said) expect(text.includes(MARK) || text.includes("987654321")).toBe(false);
    if (method.needs.model) {
      expect(said.filter((text) => text.includes(REFERENCE))).toHaveLength(items.length);
    }
  });
});

describe("the view", () => {
  it("hands a policy nothing of the label either", async () => {
    const seen: string[] = [];
    const policy: TracerPolicy = {
      id: "spy",
      predict: async (view) => {
        seen.push(JSON.stringify(view), JSON.stringify(viewAsTrajectory(view)));
        return "";
      },
    };
    const tracer = METHODS.find((method) => method.id === "tracer")!.configure();
    await evaluate({ items, method: tracer, withReference: false, context: { policy, seed: 1 } });
    expect(seen).toHaveLength(2 * items.length);
    for (const text of seen) {
      expect(text.includes(MARK) || text.includes("987654321") || text.includes(REFERENCE)).toBe(false);
    }
  });

  it("keeps what was said and done", () => {
    const { trajectory } = items[0]!;
    const view = methodView(trajectory, { withReference: false });
    expect(view.task.text).toBe(trajectory.task.text);
    expect(view.steps.map((step) => [step.index, step.agent, step.content])).toEqual(
      trajectory.steps.map((step) => [step.index, step.agent, step.content]),
    );
  });
});
