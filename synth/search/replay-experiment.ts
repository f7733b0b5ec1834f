import type { ChatModel } from "../../src/models/chat-model.ts";
import { type Correction, type ProposalCounts, proposeCorrection } from "../analyzer/analyzer.ts";
import { hintFor, proposePlacebo } from "../analyzer/control-arms.ts";
import { type Recording, rerun, type Setting, seededModel } from "../replay.ts";
import { stepsFromCalls } from "../tape/tape.ts";
import { shownAt } from "./shown-at.ts";
import type { ReplayExperiment } from "./strategy.ts";

export interface ReplayExperimentOptions {
  readonly id: string;
  readonly setting: Setting;
  readonly recording: Recording;
  readonly model: ChatModel;
  readonly analyzer: ChatModel;
  readonly analyzerAttempts: number;
  readonly seed: number;
  readonly signal?: AbortSignal;
}

/** The arms of a search, and those that control the correction: the action rephrased, or with the answer given away. */
export type RerunArm = "treated" | "control" | "placebo" | "hint";

/** What the analyzer's proposals came to in one search. */
export interface AnalyzerTally extends ProposalCounts {
  /** Steps for which a correction was asked for, and those that got one. */
  readonly steps: number;
  readonly corrected: number;
}

export interface RunExperiment extends Omit<ReplayExperiment, "rerun"> {
  /** @throws RangeError for an arm whose action this step has not; otherwise as `ReplayExperiment.rerun` */
  rerun(arm: RerunArm, step: number, replicate: number): Promise<boolean>;
  /** Whether a step has an action for a controlling arm. */
  hasArm(arm: "placebo" | "hint", step: number): Promise<boolean>;
  corrections(): readonly Correction[];
  rejected(): readonly string[];
  analyzerTally(): AnalyzerTally;
}

/** The experiment on a real failed run: corrections from the analyzer, reruns through the player. */
export function createReplayExperiment(options: ReplayExperimentOptions): RunExperiment {
  const { id, setting, recording, seed, signal } = options;
  const { tape, outcome } = recording;
  const steps = stepsFromCalls(tape.calls);
  const interruptible = signal === undefined ? {} : { signal };
  const corrections = new Map<number, Correction | undefined>();
  const placebos = new Map<number, string | undefined>();
  const rejected: string[] = [];
  let counts: ProposalCounts = { usable: 0, nonsense: 0, refused: 0, leaked: 0, rewritten: 0 };
  let liveCalls = 0;

  const correctionAt = async (step: number): Promise<Correction | undefined> => {
    if (corrections.has(step)) return corrections.get(step);
    const proposal = await proposeCorrection(setting.task, steps, step, {
      model: seededModel(options.analyzer, seed, "analyze", id, step),
      attempts: options.analyzerAttempts,
      shown: shownAt(tape, step),
      outcome,
      ...interruptible,
    });
    rejected.push(...proposal.rejected.map((reason) => `step ${step}: ${reason}`));
    counts = summed(counts, proposal.counts);
    const correction = proposal.action === undefined ? undefined : proposal;
    liveCalls += proposal.attempts;
    corrections.set(step, correction);
    return correction;
  };

  const placeboAt = async (step: number): Promise<string | undefined> => {
    const recorded = steps[step];
    if (placebos.has(step) || recorded === undefined) return placebos.get(step);
    const { action, attempts } = await proposePlacebo(setting.task, recorded, {
      model: seededModel(options.analyzer, seed, "placebo", id, step),
      attempts: options.analyzerAttempts,
      ...interruptible,
    });
    liveCalls += attempts;
    placebos.set(step, action);
    return action;
  };

  const actionOf = async (arm: RerunArm, step: number): Promise<string | undefined> => {
    switch (arm) {
      case "control":
        return undefined;
      case "treated":
        return (await correctionAt(step))?.action;
      case "placebo":
        return placeboAt(step);
      case "hint":
        return hintFor(setting.task, steps[step]?.content ?? "");
    }
  };

  return {
    length: steps.length,
    hasCorrection: async (step) => (await correctionAt(step)) !== undefined,
    hasArm: async (arm, step) => (await actionOf(arm, step)) !== undefined,
    async rerun(arm, step, replicate) {
      const action = await actionOf(arm, step);
      if (action === undefined && arm !== "control") throw new RangeError(`step ${step} has no action for arm ${arm}`);
      const cut = action === undefined ? { at: step + 1 } : { at: step, action };
      const live = seededModel(options.model, seed, "search", id, arm, step, replicate);
      const result = await rerun(setting, tape, cut, live, signal);
      liveCalls += result.liveCalls;
      return result.outcome.success;
    },
    get liveCalls() {
      return liveCalls;
    },
    corrections: () => [...corrections.values()].filter((correction) => correction !== undefined),
    rejected: () => rejected,
    analyzerTally: () => ({
      ...counts,
      steps: corrections.size,
      corrected: [...corrections.values()].filter((correction) => correction !== undefined).length,
    }),
  };
}

function summed(a: ProposalCounts, b: ProposalCounts): ProposalCounts {
  return {
    usable: a.usable + b.usable,
    nonsense: a.nonsense + b.nonsense,
    refused: a.refused + b.refused,
    leaked: a.leaked + b.leaked,
    rewritten: a.rewritten + b.rewritten,
  };
}
