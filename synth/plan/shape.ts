import { readFileSync } from "node:fs";
import { CHARACTERS_PER_TOKEN, type Estimate } from "../../src/evaluation/plan.ts";
import { shippedPath } from "../../src/package-root.ts";
import type { Task } from "../../src/trajectory/schema.ts";
import type { AgentModelConfig } from "../pipeline/config.ts";
import { recordRun, seededModel } from "../replay.ts";
import { simulatedModelFor } from "../simulator/players/registry.ts";
import { simulatorConfigSchema } from "../simulator/simulator.ts";
import type { AgentSystem } from "../systems/system.ts";
import type { TaskSet } from "../tasks/task-set.ts";

const ENDS = ["low", "expected", "high"] as const;

export function estimate(of: (end: keyof Estimate) => number): Estimate {
  const [low, expected, high] = ENDS.map(of);
  return { low: low ?? Number.NaN, expected: expected ?? Number.NaN, high: high ?? Number.NaN };
}

/** Tokens of one call. */
export interface CallSize {
  readonly prompt: Estimate;
  readonly completion: Estimate;
}

/** What one run of the system asks for, step by step. */
export interface RunShape {
  readonly steps: readonly CallSize[];
  readonly failed: boolean;
}

/** Runs that the shape of all is taken from; where each has code to run in a sandbox, fewer. */
const [SAMPLE, SANDBOXED_SAMPLE] = [60, 12];
/** Completion tokens of one turn of a language model's agent; a simulated turn is a line. */
const TURN_TOKENS: Estimate = { low: 60, expected: 250, high: 800 };

/**
 * Plays some tasks with the simulator, in process and free of charge: how many steps a run has and what its prompts hold.
 * For a model server the simulator's terse turns are replaced by turns of usual length, in the answers and in the log.
 *
 * @throws RootstepError SIMULATOR_CONFUSED where no player knows the system's prompts or the tasks; SANDBOX_…
 */
export async function sampleShapes(
  { system, taskSet, tasks }: { system: AgentSystem; taskSet: TaskSet; tasks: readonly Task[] },
  model: AgentModelConfig,
  seed: number,
): Promise<RunShape[]> {
  const simulator = model.provider === "simulator" ? model : simulatorConfigSchema.parse({});
  const player = (await simulatedModelFor(system.id, tasks))(simulator);
  const shapes: RunShape[] = [];
  const runsCode = taskSet.withSandbox !== undefined || system.withSandbox !== undefined;
  for (const task of spread(tasks, runsCode ? SANDBOXED_SAMPLE : SAMPLE)) {
    // Under the names that the run itself records by, so that a simulated run is foreseen as it will be.
    const live = seededModel(player, seed, "record", task.id);
    const { tape, outcome } = await recordRun({ system, taskSet, task }, live);
    const measured = tape.calls.map(({ request, response }) => ({
      prompt: tokens(request.messages.reduce((sum, { content }) => sum + content.length, 0)),
      completion: tokens(response.content.length),
    }));
    const steps = model.provider === "simulator" ? measured : atUsualLength(measured, model.maxTokens);
    shapes.push({ steps, failed: !outcome.success });
  }
  return shapes;
}

/** A shape for systems that the simulator cannot play: so many steps, each adding a usual turn to the task's text. */
export function assumedShape(task: Task, length: number, maxTokens?: number): RunShape {
  const first = { prompt: tokens(task.text.length + ASSUMED_INSTRUCTIONS), completion: TURN_TOKENS };
  return {
    steps: atUsualLength(
      Array.from({ length }, () => first),
      maxTokens,
    ),
    failed: true,
  };
}

/** Characters of instructions that are assumed where they are not known. */
const ASSUMED_INSTRUCTIONS = 1500;

function atUsualLength(measured: readonly CallSize[], maxTokens = Number.POSITIVE_INFINITY): CallSize[] {
  const turn = estimate((end) => Math.min(TURN_TOKENS[end], maxTokens));
  const [first] = measured;
  return measured.map((_, step) => ({
    prompt: estimate((end) => (first?.prompt[end] ?? 0) + step * turn[end]),
    completion: turn,
  }));
}

const analyzerInstructions = tokens(readFileSync(shippedPath("synth", "analyzer", "prompt.md"), "utf8").length);

/** One call of the analyzer about a step: its instructions and what the agent saw there; a thought and the action. */
export function analyzerCall(at: CallSize): CallSize {
  const instructions = analyzerInstructions;
  return {
    prompt: estimate((end) => at.prompt[end] + at.completion[end] + instructions[end]),
    completion: estimate((end) => 2 * at.completion[end]),
  };
}

function tokens(characters: number): Estimate {
  return estimate((end) => characters / CHARACTERS_PER_TOKEN[end]);
}

/** So many tasks, evenly from the whole list. */
function spread<T>(items: readonly T[], most: number): T[] {
  const count = Math.min(most, items.length);
  return Array.from({ length: count }, (_, at) => items[Math.floor((at * items.length) / count)]).filter(
    (item) => item !== undefined,
  );
}
