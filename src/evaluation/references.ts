import { readFile } from "node:fs/promises";
import { z } from "zod";
import { RootstepError } from "../errors.ts";
import { shippedPath } from "../package-root.ts";
import { type Floor, TOLERANCES } from "./floor.ts";
import { highestFloor } from "./floors.ts";

const referenceSchema = z.strictObject({
  method: z.string(),
  /** null where the source names none. */
  model: z.string().nullable(),
  subset: z.string(),
  column: z.enum(["step", "agent"]),
  tolerance: z.literal(TOLERANCES),
  /** Whether the reference answer G was in the prompt. */
  setting: z.enum(["with-reference", "without-reference", "unstated"]),
  /** As printed. */
  percent: z.number().min(0).max(100),
  /** Size of the set. */
  n: z.number().int().positive(),
  source: z.string(),
  /** False where the number comes from a later overview, not from the source's own table. */
  seenInSource: z.boolean(),
  note: z.string().optional(),
});
/** A published number; printed beside measured ones under a mark, never mixed with them. */
export type Reference = z.infer<typeof referenceSchema>;

const referenceFileSchema = z.strictObject({
  schemaVersion: z.literal(1),
  title: z.string(),
  note: z.string(),
  entries: z.array(referenceSchema),
});

/**
 * How far a second team's labels agree with the benchmark's: what a method could be held to there. Counts of logs. AgentRx
 * (arXiv 2602.02475) annotated 44 Hand-Crafted logs anew, message for message the same histories; its root causes, in
 * data/ground_truth/magentic_one_ground_truth.json, count steps from 1. Counted from that file at commit f228165; the test of
 * this constant counts again where a copy of the release lies.
 */
export const HUMAN_AGREEMENT = {
  subset: "Hand-Crafted",
  n: 44,
  step: 16,
  agent: 27,
  source:
    "AgentRx (arXiv 2602.02475), root causes of 44 Hand-Crafted logs in github.com/microsoft/AgentRx at f228165, counted against the benchmark's labels by rootstep",
} as const;

/** The files in data/references. */
export type ReferenceFile = "who-and-when" | "tracertraj";

/** Published results that ship with rootstep. @throws RootstepError DATA_INVALID, FILE_MISSING for a damaged installation */
export async function loadReferences(name: ReferenceFile, file = referencePath(name)): Promise<Reference[]> {
  let content: unknown;
  try {
    content = JSON.parse(await readFile(file, "utf8"));
  } catch (cause) {
    throw new RootstepError("FILE_MISSING", { what: "the published results cannot be read", where: file, cause });
  }
  const parsed = referenceFileSchema.safeParse(content);
  if (parsed.success) return parsed.data.entries;
  const issue = parsed.error.issues[0];
  throw new RootstepError("DATA_INVALID", {
    what: issue?.message ?? "invalid",
    where: [file, ...(issue?.path ?? [])].join(" "),
  });
}

function referencePath(name: ReferenceFile): string {
  return shippedPath("data", "references", `${name}.json`);
}

/** A share measured or published, and the column it belongs to. */
export interface Claim {
  readonly column: "step" | "agent";
  readonly tolerance: Reference["tolerance"];
  /** In [0, 1]. */
  readonly value: number;
}

export function claimOf(reference: Reference): Claim {
  return { column: reference.column, tolerance: reference.tolerance, value: reference.percent / 100 };
}

/**
 * The highest floor of the claim's column that it does not reach, or undefined if it clears them all. `floors` are those of
 * the claim's own set. Oracles are no floors here.
 */
export function belowFloor(claim: Claim, floors: readonly Floor[]): Floor | undefined {
  const highest = highestFloor(floors, claim.column, claim.tolerance);
  // Published numbers have two decimals: a value that equals the floor when printed is not below it.
  return highest !== undefined && claim.value < highest.value - 0.00005 ? highest : undefined;
}
