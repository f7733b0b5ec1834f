import { z } from "zod";
import { TRAJECTORY_SCHEMA_VERSION, type Trajectory } from "../../trajectory/schema.ts";
import { assertUsable, parseRecord, RecordError } from "../record-error.ts";
import type { AgentRxDomain } from "./release.ts";

const failureSchema = z.looseObject({
  failure_id: z.union([z.string(), z.number()]),
  /** 1-based: the release's own normaliser numbers messages from 1, and τ-bench messages carry that `index`. */
  step_number: z.number().int(),
  failed_agent: z.string().min(1),
  step_reason: z.string().optional(),
});

const annotationSchema = z.looseObject({
  trajectory_id: z.union([z.string().min(1), z.number()]),
  failures: z.array(failureSchema).min(1),
  root_cause: z.looseObject({
    failure_id: z.union([z.string(), z.number()]),
    reason_for_root_cause: z.string().optional(),
  }),
});
/** What the annotators say about one run. */
export type Annotation = z.infer<typeof annotationSchema>;

const messageSchema = z.looseObject({
  role: z.string().min(1),
  /** null where an assistant message is tool calls only. */
  content: z.string().nullish(),
  index: z.number().int().optional(),
  tool_calls: z
    .array(z.looseObject({ id: z.string(), function: z.looseObject({ name: z.string(), arguments: z.string() }) }))
    .nullish(),
});
type Message = z.infer<typeof messageSchema>;

const tauRunSchema = z.looseObject({
  task_id: z.union([z.string().min(1), z.number()]),
  traj: z.array(messageSchema),
  info: z
    .looseObject({
      task: z
        .looseObject({
          instruction: z.string().optional(),
          outputs: z.array(z.string()).optional(),
          actions: z.array(z.unknown()).optional(),
        })
        .optional(),
    })
    .optional(),
});

/** @throws RecordError DATA_INVALID */
export function decodeAnnotation(value: unknown, location: string): Annotation {
  return parseRecord(annotationSchema, value, location);
}

/** Name of the run an annotation is about. */
export const runName = (annotation: Annotation): string => String(annotation.trajectory_id);

/** `task_id` of an unchecked τ-bench run, as the annotations name it. */
export function tauRunName(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("task_id" in value)) return undefined;
  return typeof value.task_id === "number" || typeof value.task_id === "string" ? String(value.task_id) : undefined;
}

interface Run {
  readonly messages: readonly Message[];
  readonly text: string;
  readonly referenceAnswer?: string;
  readonly referenceSolution?: string;
}

/**
 * Trajectory of a run and its annotation. The label is the failure that the annotators call the root cause; all failures,
 * numbered as the source numbers them, are kept in `extra`.
 *
 * @param value the run's file (Magentic-One) or its entry (τ-bench)
 * @throws RecordError DATA_INVALID, LABEL_OUTSIDE
 */
export function decodeRun(
  domain: AgentRxDomain,
  annotation: Annotation,
  value: unknown,
  location: { readonly run: string; readonly annotation: string },
): Trajectory {
  const run = domain.slug === "tau-retail" ? tauRun(value, location.run) : magenticRun(value, location.run);
  const root = annotation.failures.find(
    (failure) => String(failure.failure_id) === String(annotation.root_cause.failure_id),
  );
  if (root === undefined) {
    const message = `root_cause names failure ${annotation.root_cause.failure_id}, which is not in failures`;
    throw new RecordError("DATA_INVALID", location.annotation, [{ path: "root_cause.failure_id", message }]);
  }
  const { trajectory_id: _, failures, root_cause, ...rest } = annotation;
  const reason = root_cause.reason_for_root_cause ?? root.step_reason;
  const id = `${domain.slug}/${runName(annotation)}`;
  // Magentic-One runs bear the ids of their GAIA and AssistantBench questions, which Who&When uses as well.
  const question = domain.slug === "magentic-one" ? runName(annotation) : id;
  const trajectory: Trajectory = {
    schemaVersion: TRAJECTORY_SCHEMA_VERSION,
    id,
    task: {
      id: question,
      text: run.text,
      ...(run.referenceAnswer !== undefined && { referenceAnswer: run.referenceAnswer }),
      ...(run.referenceSolution !== undefined && { referenceSolution: run.referenceSolution }),
      source: "agentrx",
      groupId: question,
    },
    system: domain.system,
    stepPolicy: "framework-log",
    steps: run.messages.map((message, index) => decodeMessage(message, index)),
    outcome: { success: false, checker: "agentrx" },
    labels: [
      {
        agent: root.failed_agent,
        step: root.step_number - 1,
        source: "human",
        ...(reason !== undefined && { reason }),
      },
    ],
    provenance: {
      kind: "imported",
      simulated: false,
      format: "agentrx",
      conversions: [`step_number: counted from 1 (${root.step_number}), now from 0 (${root.step_number - 1})`],
    },
    extra: { ...rest, failures, root_cause, subset: domain.subset },
  };
  assertUsable(trajectory, location.annotation);
  return trajectory;
}

function magenticRun(value: unknown, location: string): Run {
  const messages = parseRecord(z.array(messageSchema), value, location);
  const asked = messages.find(({ role }) => role === "human" || role === "user");
  return { messages, text: (asked?.content ?? "").trim() };
}

function tauRun(value: unknown, location: string): Run {
  const { traj, info } = parseRecord(tauRunSchema, value, location);
  traj.forEach((message, position) => {
    if (message.index === undefined || message.index === position + 1) return;
    const found = { path: `traj[${position}].index`, message: `index ${message.index}; messages are counted from 1` };
    throw new RecordError("DATA_INVALID", location, [found]);
  });
  const { instruction, outputs, actions } = info?.task ?? {};
  const asked = traj.find(({ role }) => role === "user");
  return {
    messages: traj,
    text: instruction ?? (asked?.content ?? "").trim(),
    ...(outputs !== undefined && outputs.length > 0 && { referenceAnswer: outputs.join("\n") }),
    ...(actions !== undefined && actions.length > 0 && { referenceSolution: JSON.stringify(actions) }),
  };
}

function decodeMessage(message: Message, index: number): Trajectory["steps"][number] {
  const { role, content, tool_calls, index: _, ...extra } = message;
  return {
    index,
    agent: role,
    role,
    kind: role === "tool" ? "tool" : "message",
    content: content ?? "",
    toolCalls: (tool_calls ?? []).map(({ id, function: called }) => ({
      id,
      name: called.name,
      arguments: called.arguments,
    })),
    retrieved: [],
    callIds: [],
    ...(Object.keys(extra).length > 0 && { extra }),
  };
}
