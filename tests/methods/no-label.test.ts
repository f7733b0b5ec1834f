import { describe, expect, it } from "vitest";
import { type EvaluationItem, loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import { evaluate } from "../../src/evaluation/run.ts";
import { type ConfiguredMethod, NO_CALLS, type TracerPolicy } from "../../src/methods/method.ts";
import { METHODS } from "../../src/methods/registry.ts";
import { computed } from "../../src/methods/shared/computed.ts";
import { methodView, viewAsTrajectory } from "../../src/methods/view.ts";
import type { CallOptions, ChatRequest, ChatResponse } from "../../src/models/chat-model.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { plausibleModel, type Style } from "./plausible-model.ts";

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

/** What must not be said, by where it was planted. */
function leaks(text: string, withReference: boolean): boolean {
  return text.includes(MARK) || text.includes("987654321") || (!withReference && text.includes(REFERENCE));
}

/** Styles of answers that take every method through all its branches: early stops, longest runs, unreadable answers. */
const STYLES: Record<string, Style | "unreadable"> = {
  "yes to everything": { decisive: () => true, confidence: 100 },
  "no to everything": { blame: 0.5, half: () => "later", confidence: 0 },
  "nothing readable": "unreadable",
};

/** Runs the method over all logs; every request and prediction is looked at as it comes. */
async function watch(
  method: ConfiguredMethod,
  withReference: boolean,
  style: Style | "unreadable",
  logs: readonly EvaluationItem[] = items,
) {
  const counts = { requests: 0, leaking: 0, withoutReference: 0 };
  const see = (request: ChatRequest, options: CallOptions | undefined): void => {
    counts.requests++;
    const { messages, ...rest } = request;
    const texts = [...messages.map(({ content }) => content), JSON.stringify(rest), JSON.stringify(options)];
    if (texts.some((text) => leaks(text, withReference))) counts.leaking++;
    if (!texts.some((text) => text.includes(REFERENCE))) counts.withoutReference++;
  };
  const model =
    style === "unreadable" ? { ...plausibleModel({}), complete: spy(see, () => "Hm.") } : plausibleModel(style, see);
  const { predictions } = await evaluate({ items: logs, method, withReference, context: { model, seed: 1 } });
  const leakingPredictions = predictions.filter((prediction) => leaks(JSON.stringify(prediction), withReference));
  expect(predictions).toHaveLength(logs.length);
  return { ...counts, leakingPredictions };
}

function spy(see: (request: ChatRequest, options: CallOptions | undefined) => void, answer: () => string) {
  return async (request: ChatRequest, options?: CallOptions): Promise<ChatResponse> => {
    see(request, options);
    return { content: answer(), toolCalls: [], finishReason: "stop", model: "spy" };
  };
}

const cases = METHODS.filter((method) => method.needs.model).flatMap((method) =>
  Object.entries(STYLES).map(([style, how]) => ({ id: method.id, method, style, how })),
);

describe.each(cases)("method $id, $style", ({ method, how }) => {
  // What cannot be read leads to the same requests as a no, but for few branches: a quarter of the logs takes them all.
  const logs = how === "unreadable" ? items.filter((_, i) => i % 4 === 0) : items;

  it("says nothing about labels, verdicts or the reference in any request without G", {
    timeout: 120_000,
  }, async () => {
    const { requests, leaking, leakingPredictions } = await watch(method.configure(), false, how, logs);
    // Binary search has nothing to ask about a log of one step; there is none.
    expect(requests).toBeGreaterThanOrEqual(logs.length);
    expect({ leaking, leakingPredictions }).toEqual({ leaking: 0, leakingPredictions: [] });
  });

  it("says the reference in every request with G, and still no label", { timeout: 120_000 }, async () => {
    const { leaking, leakingPredictions, withoutReference } = await watch(method.configure(), true, how, logs);
    expect({ leaking, leakingPredictions, withoutReference }).toEqual({
      leaking: 0,
      leakingPredictions: [],
      withoutReference: 0,
    });
  });
});

describe.each(METHODS.filter((method) => !method.needs.model))("method $id", (method) => {
  it.each([true, false])("asks nothing and answers without the label (with G: %s)", async (withReference) => {
    expect(await watch(method.configure(), withReference, {})).toMatchObject({ requests: 0, leakingPredictions: [] });
  });
});

it("the watch sees a leak where there is one", async () => {
  const leaky: ConfiguredMethod = {
    id: "leaky",
    title: "",
    needs: { model: true },
    options: {},
    plan: () => NO_CALLS,
    attribute: async (view, { model }) => {
      const source = items.find((item) => item.id === view.id)!.trajectory;
      await model!.complete({
        messages: [
          { role: "system", content: "" },
          { role: "user", content: `Step 0 · Agent: A\n${source.labels[0]!.agent} ${source.task.referenceAnswer}` },
        ],
      });
      return computed("A", 0);
    },
  };
  expect(await watch(leaky, false, {})).toMatchObject({ requests: items.length, leaking: items.length });
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
