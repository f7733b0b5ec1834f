import { z } from "zod";

/** Version of the trajectory model; written into every record, checked where one enters. */
export const TRAJECTORY_SCHEMA_VERSION = 1;

/** Unknown fields of a source are kept here and survive a round trip. */
const extra = z
  .record(z.string(), z.unknown())
  .optional()
  .describe("fields of the source that the model does not know");

export const usageSchema = z.strictObject({
  promptTokens: z.number().int().nonnegative(),
  completionTokens: z.number().int().nonnegative(),
});
/** Tokens a model call took. */
export type Usage = z.infer<typeof usageSchema>;

export const toolCallSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  /** The arguments as the model wrote them (JSON text, unparsed: a model may write bad JSON). */
  arguments: z.string(),
  result: z.string().optional(),
  error: z.string().optional(),
  startedAt: z.string().optional(),
  endedAt: z.string().optional(),
  /** True where an empty result is a valid answer of this tool. */
  emptyIsValid: z.boolean().optional(),
  extra,
});
/** One tool invocation inside a step. */
export type StepToolCall = z.infer<typeof toolCallSchema>;

export const retrievedSchema = z.strictObject({
  id: z.string(),
  text: z.string(),
  score: z.number().optional(),
  source: z.string().optional(),
});

export const stepSchema = z.strictObject({
  /** 0-based position in the trajectory, contiguous. */
  index: z.number().int().nonnegative(),
  /** The agent's name exactly as the source writes it; compare names through `sameAgent`. */
  agent: z.string().min(1),
  role: z.string().optional(),
  kind: z.enum(["message", "tool", "environment", "plan"]).default("message"),
  content: z.string(),
  toolCalls: z.array(toolCallSchema).default([]),
  retrieved: z.array(retrievedSchema).default([]),
  /** Model calls (positions on the tape) that made this step. */
  callIds: z.array(z.string()).default([]),
  usage: usageSchema.optional(),
  startedAt: z.string().optional(),
  endedAt: z.string().optional(),
  extra,
});
/** One action of one agent. */
export type Step = z.infer<typeof stepSchema>;

export const labelSchema = z.strictObject({
  agent: z.string().min(1),
  /** 0-based index of the decisive step. */
  step: z.number().int(),
  source: z.enum(["human", "counterfactual", "injection", "imported"]),
  verdict: z
    .enum(["earliest-confirmed", "decisive-earlier-undecided", "undecided", "not-replayable", "first-flip"])
    .optional(),
  /** Key of the evidence record in the side file. */
  evidenceRef: z.string().optional(),
  confidence: z.number().min(0).max(1).optional(),
  annotator: z.string().optional(),
  reason: z.string().optional(),
  createdAt: z.string().optional(),
  extra,
});
/** A claim about which agent and step were decisive, and where the claim comes from. */
export type Label = z.infer<typeof labelSchema>;

export const taskSchema = z.strictObject({
  id: z.string().min(1),
  text: z.string(),
  referenceAnswer: z.string().optional(),
  /** A worked reference solution, where the task set has one. Part of "with G" settings only. */
  referenceSolution: z.string().optional(),
  /** The task set: gsm8k, chain, who-and-when, … */
  source: z.string(),
  /** Tasks with one group never part over two splits. */
  groupId: z.string().min(1),
  extra,
});
export type Task = z.infer<typeof taskSchema>;

export const outcomeSchema = z.strictObject({
  /** Ω(τ): the checker's verdict. */
  success: z.boolean(),
  answer: z.string().optional(),
  /** Name of the checker that decided. */
  checker: z.string(),
  detail: z.string().optional(),
});
export type Outcome = z.infer<typeof outcomeSchema>;

export const provenanceSchema = z.strictObject({
  /** recorded · counterfactual rerun · injected · imported from a file. */
  kind: z.enum(["recorded", "rerun", "injected", "imported"]),
  /** Model that played the agents; "simulator:…" marks simulated runs. */
  model: z.string().optional(),
  /** True for runs of rootstep's simulator: never mixed into real data unmarked. */
  simulated: z.boolean().default(false),
  format: z.string().optional(),
  file: z.string().optional(),
  seed: z.union([z.number(), z.string()]).optional(),
  /** What a reader changed on the way in, e.g. an index base. */
  conversions: z.array(z.string()).default([]),
  extra,
});

export const trajectorySchema = z.strictObject({
  schemaVersion: z.literal(TRAJECTORY_SCHEMA_VERSION),
  id: z.string().min(1),
  task: taskSchema,
  /** Name of the multi-agent system. */
  system: z.string(),
  /** How calls were cut into steps: per-call, per-agent-turn, framework-log, … */
  stepPolicy: z.string(),
  steps: z.array(stepSchema),
  outcome: outcomeSchema,
  labels: z.array(labelSchema).default([]),
  provenance: provenanceSchema,
  extra,
});
/** A run of a multi-agent system: what was asked, who did what, how it ended, and what is claimed about its failure. */
export type Trajectory = z.infer<typeof trajectorySchema>;
