import { normalizeAgent, stripRemark } from "../trajectory/agent-name.ts";
import { type Step, TRAJECTORY_SCHEMA_VERSION, type Trajectory } from "../trajectory/schema.ts";

/** A step as a method sees it: who did what. Tape positions, usage, times and source fields could betray an injection. */
export interface ViewStep extends Pick<Step, "index" | "agent" | "kind" | "content" | "retrieved"> {
  readonly toolCalls: readonly {
    readonly name: string;
    readonly arguments: string;
    readonly result?: string;
    readonly error?: string;
  }[];
}

/** A failed run as a method sees it: no label, no verdict, no field of the source that the model does not know. */
export interface MethodView {
  readonly id: string;
  readonly task: {
    readonly id: string;
    readonly text: string;
    readonly source: string;
    readonly groupId: string;
    /** G: in "with G" settings only. */
    readonly referenceAnswer?: string;
    readonly referenceSolution?: string;
  };
  readonly system: string;
  readonly stepPolicy: string;
  readonly steps: readonly ViewStep[];
}

/**
 * What a method may know of a run. It is built field by field, never copied and stripped, so that a label can reach no
 * prompt; without G the reference answer and solution stay out as well.
 */
export function methodView(trajectory: Trajectory, settings: { readonly withReference: boolean }): MethodView {
  const { id, text, source, groupId, referenceAnswer, referenceSolution } = trajectory.task;
  return {
    id: trajectory.id,
    task: {
      id,
      text,
      source,
      groupId,
      ...(settings.withReference && referenceAnswer !== undefined && { referenceAnswer }),
      ...(settings.withReference && referenceSolution !== undefined && { referenceSolution }),
    },
    system: trajectory.system,
    stepPolicy: trajectory.stepPolicy,
    steps: trajectory.steps.map(viewStep),
  };
}

function viewStep({ index, agent, kind, content, toolCalls, retrieved }: Step): ViewStep {
  return {
    index,
    agent,
    kind,
    content,
    retrieved,
    toolCalls: toolCalls.map(({ name, arguments: args, result, error }) => ({
      name,
      arguments: args,
      ...(result !== undefined && { result }),
      ...(error !== undefined && { error }),
    })),
  };
}

/** The view in the shape of a trajectory, for policies whose codec reads those; labels stay empty, the verdict is withheld. */
export function viewAsTrajectory(view: MethodView): Trajectory {
  return {
    schemaVersion: TRAJECTORY_SCHEMA_VERSION,
    id: view.id,
    task: { ...view.task },
    system: view.system,
    stepPolicy: view.stepPolicy,
    steps: view.steps.map((step) => ({
      ...step,
      retrieved: [...step.retrieved],
      toolCalls: step.toolCalls.map((call, i) => ({ id: `call-${i}`, ...call })),
      callIds: [],
    })),
    outcome: { success: false, checker: "withheld" },
    labels: [],
    provenance: { kind: "imported", simulated: false, conversions: [] },
  };
}

const agents = new WeakMap<object, readonly string[]>();

/** The agents of a run in order of their first turn, as that turn writes them, without remarks in parentheses. */
export function agentsOf(view: { readonly steps: readonly { readonly agent: string }[] }): readonly string[] {
  const known = agents.get(view.steps) ?? firstTurns(view.steps);
  agents.set(view.steps, known);
  return known;
}

function firstTurns(steps: readonly { readonly agent: string }[]): string[] {
  const seen = new Set<string>();
  const names = new Map<string, string>();
  for (const { agent } of steps) {
    if (seen.has(agent)) continue;
    seen.add(agent);
    const name = normalizeAgent(agent);
    if (!names.has(name)) names.set(name, stripRemark(agent));
  }
  return [...names.values()];
}
