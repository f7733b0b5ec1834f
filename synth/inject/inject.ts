import { wilsonInterval } from "../../src/evaluation/statistics.ts";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { stream } from "../../src/random.ts";
import { type Recording, type Rerun, recordRun, rerun, type Setting, seededModel } from "../replay.ts";
import { addBlock, type EProcess, emptyEProcess, probabilityOfEffect } from "../search/e-process.ts";
import { shownAt } from "../search/shown-at.ts";
import type { SearchSettings } from "../search/strategy.ts";
import { stepsFromCalls } from "../tape/tape.ts";
import { contextOf, domainOf, type InjectionOperator, type Perturbation, requireDomain } from "./operator.ts";
import { rephrased } from "./rephrase.ts";

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
  /** The operator that made the action: under `any` the rule that was drawn. Absent where it found nothing to change. */
  readonly operator?: string;
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
  /** Makes mistakes for operators that ask a model; default: the model that plays the agents. */
  readonly injector?: ChatModel;
  readonly operator: InjectionOperator;
  readonly settings: InjectionSettings;
  readonly test: SearchSettings;
  readonly seed: number;
  readonly signal?: AbortSignal;
}

/**
 * Injects a fault into a successful run (§4.1, D⁺). The run must succeed reliably when rerun; then up to K seeded points
 * are perturbed, and the first at which the perturbation makes it fail more often than the placebo does is the label.
 *
 * @throws RootstepError CONFIG_INVALID where the operator is not for tasks of this kind; MODEL_*, BUDGET_REACHED, INTERRUPTED
 */
export async function injectFault(input: InjectionInput): Promise<InjectionResult> {
  requireDomain(input.operator, domainOf(input.setting.task));
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
  const { id, setting, recording, model, test, seed, signal } = input;
  const original = recording.tape.calls[step]?.response.content ?? "";
  const { made, calls } = await perturbed(input, step, original);
  if (made === undefined) {
    return {
      evidence: evidenceOf(step, { action: original }, emptyEProcess, "nothing to change"),
      firstFailure: undefined,
      liveCalls: calls,
    };
  }
  const placebo = rephrased(original, domainOf(setting.task));
  let process = emptyEProcess;
  let firstFailure: Rerun | undefined;
  let liveCalls = calls;
  const arm = async (name: string, said: string): Promise<Rerun> => {
    const live = seededModel(model, seed, "inject", id, name, step, process.blocks);
    const result = await rerun(setting, recording.tape, { at: step, action: said }, live, signal);
    liveCalls += result.liveCalls;
    return result;
  };
  let decision: PointEvidence["decision"] = "undecided";
  while (decision === "undecided" && process.blocks < test.maxBlocks) {
    const treated = await arm("perturbed", made.action);
    const control = await arm("placebo", placebo);
    if (!treated.outcome.success) firstFailure ??= treated;
    process = addBlock(process, !treated.outcome.success, !control.outcome.success);
    if (process.eValue >= 1 / test.alpha) decision = "decisive";
    else if (probabilityOfEffect(process, test.minEffect) < test.futility) decision = "harmless";
  }
  return { evidence: evidenceOf(step, made, process, decision), firstFailure, liveCalls };
}

/** The perturbed action, undefined where there is nothing to change, and the live calls it took. */
async function perturbed(
  input: InjectionInput,
  step: number,
  original: string,
): Promise<{ readonly made: Perturbation | undefined; readonly calls: number }> {
  const { id, setting, recording, operator, seed, signal } = input;
  const shown = shownAt(recording.tape, step);
  if (operator.kind !== "model") {
    const random = stream(seed, "inject", id, "perturb", step);
    const context = contextOf(setting.task, shown);
    if (operator.kind === "choice") return { made: operator.choose(original, random, context), calls: 0 };
    return { made: by(operator, operator.perturb(original, random, context)), calls: 0 };
  }
  const model = seededModel(input.injector ?? input.model, seed, "inject", id, "mistake", step);
  const steps = stepsFromCalls(recording.tape.calls);
  const { action, calls } = await operator.propose({ task: setting.task, steps, index: step, shown, model, signal });
  return { made: by(operator, action), calls };
}

const by = ({ id }: InjectionOperator, action: string | undefined): Perturbation | undefined =>
  action === undefined ? undefined : { operator: id, action };

function evidenceOf(
  step: number,
  made: Pick<Perturbation, "action"> & Partial<Perturbation>,
  process: EProcess,
  decision: PointEvidence["decision"],
): PointEvidence {
  return {
    step,
    ...made,
    blocks: process.blocks,
    perturbedFailures: process.treated,
    placeboFailures: process.control,
    eValue: process.eValue,
    decision,
  };
}
