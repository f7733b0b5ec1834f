import type { ChatModel } from "../src/models/chat-model.ts";
import { derivedSeed } from "../src/random.ts";
import type { Outcome, Task } from "../src/trajectory/schema.ts";
import type { AgentSystem } from "./systems/system.ts";
import { type Cut, createPlayer } from "./tape/player.ts";
import { createRecorder } from "./tape/recorder.ts";
import type { Tape, TapedCall } from "./tape/tape.ts";
import type { TaskSet } from "./tasks/task-set.ts";

/** A system with the task it works on and what decides whether it succeeded. */
export interface Setting {
  readonly system: AgentSystem;
  readonly taskSet: TaskSet;
  readonly task: Task;
}

/** Gives every live call of a run a seed of its own, named after the run and the call's position. */
export function seededModel(model: ChatModel, seed: number, ...run: readonly (string | number)[]): ChatModel {
  let position = 0;
  return {
    id: model.id,
    complete: (request, options) =>
      model.complete({ ...request, seed: derivedSeed(seed, ...run, position++) }, options),
  };
}

export interface Recording {
  readonly tape: Tape;
  readonly outcome: Outcome;
}

/** Runs the system once, live, and keeps the tape. */
export async function recordRun(setting: Setting, model: ChatModel, signal?: AbortSignal): Promise<Recording> {
  const recorder = createRecorder(model);
  const { answer } = await setting.system.run(setting.task, recorder.model, signal);
  return { tape: recorder.tape(), outcome: await setting.taskSet.check(setting.task, answer) };
}

export interface Rerun {
  readonly outcome: Outcome;
  readonly liveCalls: number;
  readonly calls: readonly TapedCall[];
}

/**
 * Runs the system again: the tape answers before the cut, the corrected action at it, `live` after it.
 *
 * @throws RootstepError REPLAY_DIVERGED where the program does not ask what it asked when recorded
 */
export async function rerun(
  setting: Setting,
  tape: Tape,
  cut: Cut,
  live: ChatModel,
  signal?: AbortSignal,
): Promise<Rerun> {
  const player = createPlayer({ tape, cut, live });
  const { answer } = await setting.system.run(setting.task, player.model, signal);
  const outcome = await setting.taskSet.check(setting.task, answer);
  return { outcome, liveCalls: player.liveCalls, calls: player.calls() };
}

/**
 * The identity gate: replaying the whole tape must make no live call, use every recording and give the same outcome.
 * @returns undefined if it holds, else what did not
 */
export async function identityFault(setting: Setting, recording: Recording): Promise<string | undefined> {
  const player = createPlayer({ tape: recording.tape });
  let answer: string | undefined;
  try {
    ({ answer } = await setting.system.run(setting.task, player.model));
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  if (player.unplayed() > 0) return `the program made ${player.unplayed()} calls fewer than the tape holds`;
  const outcome = await setting.taskSet.check(setting.task, answer);
  if (outcome.success === recording.outcome.success && outcome.answer === recording.outcome.answer) return undefined;
  return `the replay answered ${outcome.answer ?? "nothing"}, the recording ${recording.outcome.answer ?? "nothing"}`;
}
