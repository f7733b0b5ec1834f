import { agentsOf } from "../../src/methods/view.ts";
import { sameAgent } from "../../src/trajectory/agent-name.ts";
import type { Label, Trajectory } from "../../src/trajectory/schema.ts";
import type { Sample } from "./two-sample.ts";

/** A failed run with a label that lies in its log. */
export interface LabelledFailure {
  readonly trajectory: Trajectory;
  readonly label: Label;
}

/** The first label counts, as everywhere. Undefined for a run that succeeded, has no label, or one outside its log. */
export function labelledFailure(trajectory: Trajectory): LabelledFailure | undefined {
  const [label] = trajectory.labels;
  if (label === undefined || trajectory.outcome.success || trajectory.steps[label.step] === undefined) return undefined;
  return { trajectory, label };
}

/** What surface features of a failure there are: none reads a word, so they compare across systems. */
export const FAILURE_FEATURES: readonly {
  readonly id: string;
  readonly title: string;
  of(failure: LabelledFailure): number;
}[] = [
  { id: "position", title: "decisive step, relative (0 first, 1 last)", of: relativePosition },
  { id: "length", title: "steps", of: ({ trajectory }) => trajectory.steps.length },
  { id: "agents", title: "agents", of: ({ trajectory }) => agentsOf(trajectory).length },
  {
    id: "blamed-share",
    title: "share of the steps by the blamed agent",
    of: ({ trajectory, label }) => share(trajectory, ({ agent }) => sameAgent(agent, label.agent)),
  },
  {
    id: "tool-share",
    title: "share of the steps with tool calls",
    of: ({ trajectory }) => share(trajectory, ({ toolCalls }) => toolCalls.length > 0),
  },
  {
    id: "step-characters",
    title: "characters a step (log10)",
    of: ({ trajectory: { steps } }) =>
      Math.log10(1 + steps.reduce((sum, { content }) => sum + content.length, 0) / Math.max(1, steps.length)),
  },
  {
    id: "decisive-characters",
    title: "characters of the decisive step (log10)",
    of: ({ trajectory, label }) => Math.log10(1 + (trajectory.steps[label.step]?.content.length ?? 0)),
  },
];

export function sampleOf(failure: LabelledFailure): Sample {
  return {
    features: FAILURE_FEATURES.map((feature) => feature.of(failure)),
    cluster: failure.trajectory.task.groupId,
  };
}

function relativePosition({ trajectory, label }: LabelledFailure): number {
  const last = trajectory.steps.length - 1;
  return last === 0 ? 0 : label.step / last;
}

function share({ steps }: Trajectory, holds: (step: Trajectory["steps"][number]) => boolean): number {
  return steps.filter(holds).length / Math.max(1, steps.length);
}
