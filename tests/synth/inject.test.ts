import { describe, expect, it } from "vitest";
import { stream } from "../../src/random.ts";
import { type InjectionInput, injectFault } from "../../synth/inject/inject.ts";
import { wrongNumberOperator } from "../../synth/inject/wrong-number.ts";
import { recordRun, seededModel } from "../../synth/replay.ts";
import { SETTINGS } from "./search-strategy.conformance.ts";
import { bench } from "./setting.ts";

const settings = { points: 3, minControlSuccess: 0.8, maxAdmissionReruns: 40 };

async function successfulRuns(count: number, config: { noise: number; hardRate: number }): Promise<InjectionInput[]> {
  const made = await bench("chain", count * 3);
  const model = made.model(config);
  const inputs: InjectionInput[] = [];
  for (const setting of made.settings) {
    const id = setting.task.id;
    const recording = await recordRun(setting, seededModel(model, 2, "record", id));
    if (!recording.outcome.success) continue;
    inputs.push({ id, setting, recording, model, operator: wrongNumberOperator, settings, test: SETTINGS, seed: 2 });
  }
  return inputs.slice(0, count);
}

describe("the operator wrong-number", () => {
  it.each([
    ["Plan 2: previous - 4 (last)", /^Plan 2: previous - (?!4 )\d+ \(last\)$/u],
    ["13 - 4 = 9", /^\d+ - \d+ = -?\d+$/u],
    ["Checked: the current value is 9.", /^Checked: the current value is (?!9\.)\d+\.$/u],
  ])("changes a quantity of %s and nothing else", (action, form) => {
    for (let draw = 0; draw < 50; draw++) {
      const perturbed = wrongNumberOperator.perturb(action, stream(1, draw));
      expect(perturbed).toMatch(form);
      expect(perturbed).not.toBe(action);
    }
  });

  it("works an equation out anew, so that the line is consistent in itself", () => {
    for (let draw = 0; draw < 50; draw++) {
      const [, left, right, result] =
        /^(\d+) - (\d+) = (-?\d+)$/u.exec(wrongNumberOperator.perturb("13 - 4 = 9", stream(2, draw)) ?? "") ?? [];
      const changedLeft = left !== "13" || right !== "4";
      if (changedLeft) expect(Number(result)).toBe(Number(left) - Number(right));
    }
  });

  it("finds nothing in a line without quantities, and does not touch list numbers or references", () => {
    expect(wrongNumberOperator.perturb("I cannot tell.", stream(1))).toBeUndefined();
    expect(wrongNumberOperator.perturb("Plan 3: result 1 + previous", stream(1))).toBeUndefined();
  });
});

describe("injection into a successful run", () => {
  it("labels the perturbed step of a run that the placebo leaves alone", async () => {
    const inputs = await successfulRuns(25, { noise: 0.02, hardRate: 0 });
    let labelled = 0;
    for (const input of inputs) {
      const { admission, points, failed } = await injectFault(input);
      expect(admission.admitted).toBe(true);
      if (failed === undefined) continue;
      labelled++;
      expect(failed.run.outcome.success).toBe(false);
      expect(points.at(-1)).toMatchObject({ step: failed.step, decision: "decisive" });
      expect(failed.run.calls[failed.step]?.response.content).toBe(points.at(-1)?.action);
      // Everything before the fault is the recorded run.
      const prefixOf = (calls: readonly { response: { content: string } }[]) =>
        calls.slice(0, failed.step).map((c) => c.response.content);
      expect(prefixOf(failed.run.calls)).toEqual(prefixOf(input.recording.tape.calls));
    }
    expect(labelled).toBeGreaterThan(20);
  });

  it("does not use runs that fail too often when rerun", async () => {
    for (const input of await successfulRuns(8, { noise: 0.6, hardRate: 0 })) {
      const { admission, failed } = await injectFault(input);
      expect(admission.admitted).toBe(false);
      expect(admission.runs).toBeLessThanOrEqual(settings.maxAdmissionReruns);
      expect(failed).toBeUndefined();
    }
  });

  it("gives the same result again", async () => {
    const [input] = await successfulRuns(1, { noise: 0.02, hardRate: 0 });
    const twice = [await injectFault(input as InjectionInput), await injectFault(input as InjectionInput)];
    expect(twice[0]).toEqual(twice[1]);
  });
});
