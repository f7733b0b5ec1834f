import { wilsonInterval } from "../../src/evaluation/statistics.ts";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { stream } from "../../src/random.ts";
import { type Recording, type Rerun, recordRun, rerun, type Setting, seededModel } from "../replay.ts";
import { addBlock, type EProcess, emptyEProcess, probabilityOfEffect } from "../search/e-process.ts";
import type { SearchSettings } from "../search/strategy.ts";
import type { InjectionOperator } from "./operator.ts";

export interface InjectionSettings {
  /** K: points tried in one run. */
  readonly points: number;
  /** Lower 95% bound that the success rate of plain reruns must reach before a run is used. */
  readonly minControlSuccess: number;
  /** Plain reruns after which a run that has not reached the bound is not used. */
  readonly maxAdmissionReruns: number;
}

export interface PointEvidence {
  readonly step: number;
  readonly action: string;
  /** Failures under the perturbation and under the placebo, of `blocks` runs each. */
  readonly blocks: number;
  readonly perturbedFailures: number;
  readonly placeboFailures: number;
  readonly eValue: number;
  readonly decision: "decisive" | "harmless" | "undecided" | "nothing to change";
}

export interface InjectionResult {
  readonly admission: { readonly runs: number; readonly successes: number; readonly admitted: boolean };
  readonly points: readonly PointEvidence[];
  /** The failed run with the fault at `step`, if a point was decisive. */
  readonly failed?: { readonly step: number; readonly agent: string; readonly run: Rerun };
  readonly liveCalls: number;
}

export interface InjectionInput {
  readonly id: string;
  readonly setting: Setting;
  readonly recording: Recording;
  readonly model: ChatModel;
  readonly operator: InjectionOperator;
  readonly settings: InjectionSettings;
  readonly test: SearchSettings;
  readonly seed: number;
  readonly signal?: AbortSignal;
}

/**
 * Injects a fault into a successful run (§4.1, D⁺). The run must succeed reliably when rerun; then up to K seeded points
 * are perturbed, and the first at which the perturbation makes it fail more often than the placebo does is the label.
 */
export async function injectFault(input: InjectionInput): Promise<InjectionResult> {
  const { admission, liveCalls: admissionCalls } = await admit(input);
  if (!admission.admitted) return { admission, points: [], liveCalls: admissionCalls };
  const points: PointEvidence[] = [];
  let liveCalls = admissionCalls;
  for (const step of chosenPoints(input)) {
    const tried = await tryPoint(input, step);
    liveCalls += tried.liveCalls;
    points.push(tried.evidence);
    if (tried.evidence.decision !== "decisive" || tried.firstFailure === undefined) continue;
    const agent = input.recording.tape.calls[step]?.lane ?? "";
    return { admission, points, failed: { step, agent, run: tried.firstFailure }, liveCalls };
  }
  return { admission, points, liveCalls };
}

function chosenPoints({ id, recording, settings, seed }: InjectionInput): number[] {
  const steps = recording.tape.calls.map((call) => call.index);
  return stream(seed, "inject", id, "points").shuffle(steps).slice(0, settings.points);
}

/** Plain reruns until the lower bound of the success rate is reached or cannot be any more. */
async function admit({ id, setting, model, settings, seed, signal }: InjectionInput) {
  const { minControlSuccess, maxAdmissionReruns } = settings;
  let [runs, successes, liveCalls] = [0, 0, 0];
  const bound = (extra: number): number => wilsonInterval(successes + extra, runs + extra).low;
  while (runs < maxAdmissionReruns && (runs === 0 || bound(0) < minControlSuccess)) {
    if (runs > 0 && bound(maxAdmissionReruns - runs) < minControlSuccess) break;
    const live = seededModel(model, seed, "inject", id, "admission", runs);
    const { outcome, tape } = await recordRun(setting, live, signal);
    runs++;
    successes += Number(outcome.success);
    liveCalls += tape.calls.length;
  }
  return { admission: { runs, successes, admitted: bound(0) >= minControlSuccess }, liveCalls };
}

async function tryPoint(input: InjectionInput, step: number) {
  const { id, setting, recording, model, operator, test, seed, signal } = input;
  const original = recording.tape.calls[step]?.response.content ?? "";
  const action = operator.perturb(original, stream(seed, "inject", id, "perturb", step));
  if (action === undefined) {
    return {
      evidence: evidenceOf(step, original, emptyEProcess, "nothing to change"),
      firstFailure: undefined,
      liveCalls: 0,
    };
  }
  const placebo = operator.rephrase(original);
  let process = emptyEProcess;
  let firstFailure: Rerun | undefined;
  let liveCalls = 0;
  const arm = async (name: string, said: string): Promise<Rerun> => {
    const live = seededModel(model, seed, "inject", id, name, step, process.blocks);
    const result = await rerun(setting, recording.tape, { at: step, action: said }, live, signal);
    liveCalls += result.liveCalls;
    return result;
  };
  let decision: PointEvidence["decision"] = "undecided";
  while (decision === "undecided" && process.blocks < test.maxBlocks) {
    const perturbed = await arm("perturbed", action);
    const control = await arm("placebo", placebo);
    if (!perturbed.outcome.success) firstFailure ??= perturbed;
    process = addBlock(process, !perturbed.outcome.success, !control.outcome.success);
    if (process.eValue >= 1 / test.alpha) decision = "decisive";
    else if (probabilityOfEffect(process, test.minEffect) < test.futility) decision = "harmless";
  }
  return { evidence: evidenceOf(step, action, process, decision), firstFailure, liveCalls };
}

function evidenceOf(
  step: number,
  action: string,
  process: EProcess,
  decision: PointEvidence["decision"],
): PointEvidence {
  return {
    step,
    action,
    blocks: process.blocks,
    perturbedFailures: process.treated,
    placeboFailures: process.control,
    eValue: process.eValue,
    decision,
  };
}
