import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RootstepError } from "../../src/errors.ts";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { HANG, SCENARIOS, type Scenario } from "./scenarios.ts";

/** A model under test, with what answers it. */
export interface Subject {
  readonly model: ChatModel;
  /** Secrets that nothing may show. */
  readonly secrets: readonly string[];
  /** Resolves when the model's next request has reached what answers. */
  nextArrival(): Promise<void>;
  close(): Promise<void>;
}

/** What every ChatModel must do. Each subject answers `SCENARIOS` and never answers `HANG`. */
export function chatModelConformance(name: string, open: () => Promise<Subject>): void {
  describe(`ChatModel: ${name}`, () => {
    let subject: Subject;
    beforeAll(async () => {
      subject = await open();
    });
    afterAll(() => subject.close());

    for (const [scenarioName, scenario] of Object.entries(SCENARIOS) as [string, Scenario][]) {
      test(`answers "${scenarioName}" whole`, async () => {
        expect(await subject.model.complete(scenario.request)).toEqual(scenario.response);
      });

      test(`the pieces of "${scenarioName}" add up to its answer`, async () => {
        let content = "";
        let reasoning = "";
        const response = await subject.model.complete(scenario.request, {
          epoch: 1,
          onDelta: (delta) => {
            content += delta.content ?? "";
            reasoning += delta.reasoning ?? "";
          },
        });
        expect(response).toEqual(scenario.response);
        expect({ content, reasoning }).toEqual({
          content: scenario.response.content,
          reasoning: scenario.response.reasoning ?? "",
        });
      });
    }

    test("answers requests at the same time, each with its own answer", async () => {
      const scenarios: Scenario[] = [...Object.values(SCENARIOS), ...Object.values(SCENARIOS)];
      const answers = await Promise.all(
        scenarios.map(({ request }, i) => subject.model.complete(request, { epoch: i })),
      );
      expect(answers).toEqual(scenarios.map(({ response }) => response));
    });

    test("is interrupted while the answer is awaited", async () => {
      const controller = new AbortController();
      const arrival = subject.nextArrival();
      const call = subject.model.complete(HANG, { signal: controller.signal });
      const outcome = call.catch((error: unknown) => error);
      await arrival;
      controller.abort();
      expect(await outcome).toMatchObject({ name: "RootstepError", code: "INTERRUPTED" });
    });

    test("asks nothing when it is interrupted beforehand", async () => {
      await expect(subject.model.complete(HANG, { signal: AbortSignal.abort() })).rejects.toMatchObject({
        code: "INTERRUPTED",
      });
    });

    test("gives the reason of an interruption that has one", async () => {
      const reason = new RootstepError("BUDGET_REACHED", { what: "enough" });
      await expect(subject.model.complete(HANG, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    });

    test("has an id and shows no secret", async () => {
      const { model, secrets } = subject;
      expect(model.id).not.toBe("");
      for (const secret of secrets) {
        for (const shown of [model.id, JSON.stringify(model), inspect(model, { depth: 10, showHidden: true })]) {
          expect(shown).not.toContain(secret);
        }
      }
    });
  });
}
