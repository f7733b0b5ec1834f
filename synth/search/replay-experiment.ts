import type { ChatModel } from "../../src/models/chat-model.ts";
import { type Correction, proposeCorrection } from "../analyzer/analyzer.ts";
import { type Recording, rerun, type Setting, seededModel } from "../replay.ts";
import { stepsFromCalls } from "../tape/tape.ts";
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

/** The experiment on a real failed run: corrections from the analyzer, reruns through the player. */
export function createReplayExperiment(
  options: ReplayExperimentOptions,
): ReplayExperiment & { corrections(): readonly Correction[]; rejected(): readonly string[] } {
  const { id, setting, recording, seed, signal } = options;
  const steps = stepsFromCalls(recording.tape.calls);
  const corrections = new Map<number, Correction | undefined>();
  const rejected: string[] = [];
  let liveCalls = 0;

  const correctionAt = async (step: number): Promise<Correction | undefined> => {
    if (corrections.has(step)) return corrections.get(step);
    const proposal = await proposeCorrection(setting.task, steps, step, {
      model: seededModel(options.analyzer, seed, "analyze", id, step),
      attempts: options.analyzerAttempts,
      ...(signal === undefined ? {} : { signal }),
    });
    rejected.push(...proposal.rejected.map((reason) => `step ${step}: ${reason}`));
    const correction = proposal.action === undefined ? undefined : proposal;
    liveCalls += correction?.attempts ?? options.analyzerAttempts;
    corrections.set(step, correction);
    return correction;
  };

  return {
    length: steps.length,
    hasCorrection: async (step) => (await correctionAt(step)) !== undefined,
    async rerun(arm, step, replicate) {
      const correction = arm === "treated" ? await correctionAt(step) : undefined;
      const cut = correction === undefined ? { at: step + 1 } : { at: step, action: correction.action };
      const live = seededModel(options.model, seed, "search", id, arm, step, replicate);
      const result = await rerun(setting, recording.tape, cut, live, signal);
      liveCalls += result.liveCalls;
      return result.outcome.success;
    },
    get liveCalls() {
      return liveCalls;
    },
    corrections: () => [...corrections.values()].filter((correction) => correction !== undefined),
    rejected: () => rejected,
  };
}
