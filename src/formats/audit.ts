import { RootstepError } from "../errors.ts";
import { stripRemark } from "../trajectory/agent-name.ts";
import { labelInconsistency } from "../trajectory/invariants.ts";
import type { Trajectory } from "../trajectory/schema.ts";
import { cleanSubset, duplicateHistories } from "./clean-subset.ts";
import { originOf, readRecordFile, whoAndWhenFiles } from "./who-and-when/read.ts";
import { decodeRecord, KNOWN_FIELDS } from "./who-and-when/record.ts";
import { subsetNamed, WHO_AND_WHEN_SUBSETS, type WhoAndWhenSubset } from "./who-and-when/subsets.ts";

/** A log is named by its file: "36" is 36.json of the subset. */
export interface SubsetAudit {
  readonly subset: WhoAndWhenSubset["folder"];
  readonly logs: number;
  readonly steps: { readonly total: number; readonly min: number; readonly median: number; readonly max: number };
  /** Characters (code points) of step content in the longest log. */
  readonly longest: { readonly log: string; readonly characters: number };
  /** JSON type → how many logs have it: `{ string: 126 }`. */
  readonly mistakeStepTypes: Readonly<Record<string, number>>;
  readonly levelTypes: Readonly<Record<string, number>>;
  /** Logs by verdict field and value: `{ "is_correct: false": 126 }`. */
  readonly verdicts: Readonly<Record<string, number>>;
  /** The field that names the speaker. */
  readonly speakerField: "name" | "role";
  /** Labels that name the speaker of their step if steps are counted from 0, and if they are counted from 1. */
  readonly labelIsSpeaker: { readonly zeroBased: number; readonly oneBased: number };
  readonly labelNotSpeaker: readonly string[];
  readonly labelSteps: { readonly min: number; readonly max: number };
  /** Fields that only few logs have, with those logs. */
  readonly oddKeys: readonly { readonly key: string; readonly logs: readonly string[] }[];
  /** Speaker names with a remark that is stripped before names are compared. */
  readonly remarks: readonly { readonly raw: string; readonly agent: string; readonly steps: number }[];
  /** Agents with a hyphen in the name proper. */
  readonly hyphenNames: readonly string[];
  readonly emptySteps: readonly { readonly log: string; readonly step: number }[];
  readonly duplicateHistories: readonly { readonly logs: readonly string[]; readonly sameLabel: boolean }[];
  /** Logs in which the question's text does not occur. */
  readonly questionNotInHistory: readonly string[];
  /** Logs left by `cleanSubset`. */
  readonly clean: number;
}

export interface WhoAndWhenAudit {
  readonly subsets: readonly SubsetAudit[];
  /** Hand-Crafted logs whose question_ID occurs in Algorithm-Generated too. */
  readonly sharedQuestions: { readonly shared: number; readonly of: number };
}

interface AuditedLog {
  readonly log: string;
  readonly raw: Record<string, unknown>;
  readonly trajectory: Trajectory;
}

/** A field in at most this share of a subset's logs is odd. */
const ODD_SHARE = 0.1;

/**
 * What the files of Who&When really look like, computed from the files.
 * @throws RootstepError DATA_UNKNOWN_FORMAT (no logs), and all of the reader's: a damaged data set is not audited
 */
export async function auditWhoAndWhen(dir: string): Promise<WhoAndWhenAudit> {
  const logs: AuditedLog[] = [];
  for (const file of await whoAndWhenFiles(dir)) {
    const value = await readRecordFile(file);
    const origin = originOf(file);
    const trajectory = decodeRecord(value, origin);
    logs.push({ log: origin.stem, raw: Object.fromEntries(Object.entries(value ?? {})), trajectory });
  }
  if (logs.length === 0) throw new RootstepError("DATA_UNKNOWN_FORMAT", { what: "no Who&When logs here", where: dir });
  const of = (subset: WhoAndWhenSubset): AuditedLog[] =>
    logs.filter(({ trajectory }) => subsetNamed(trajectory.extra?.subset) === subset);
  const [generated, crafted] = WHO_AND_WHEN_SUBSETS;
  const questions = new Set(of(generated).map(({ trajectory }) => trajectory.task.id));
  return {
    subsets: WHO_AND_WHEN_SUBSETS.filter((subset) => of(subset).length > 0).map((subset) =>
      auditSubset(subset, of(subset)),
    ),
    sharedQuestions: {
      shared: of(crafted).filter(({ trajectory }) => questions.has(trajectory.task.id)).length,
      of: of(crafted).length,
    },
  };
}

function auditSubset(subset: WhoAndWhenSubset, logs: readonly AuditedLog[]): SubsetAudit {
  const trajectories = logs.map(({ trajectory }) => trajectory);
  const logOf = new Map(logs.map(({ log, trajectory }) => [trajectory, log]));
  const name = (trajectory: Trajectory): string => logOf.get(trajectory) ?? trajectory.id;
  const lengths = trajectories.map((trajectory) => trajectory.steps.length).sort((a, b) => a - b);
  const labelSteps = trajectories.flatMap((trajectory) => trajectory.labels.map((label) => label.step));
  const notSpeaker = trajectories.filter((trajectory) => !labelFits(trajectory, 0));
  const longest = trajectories
    .map((trajectory) => ({ log: name(trajectory), characters: charactersOf(trajectory) }))
    .reduce((a, b) => (b.characters > a.characters ? b : a));
  return {
    subset: subset.folder,
    logs: logs.length,
    steps: {
      total: lengths.reduce((sum, length) => sum + length, 0),
      min: lengths[0] ?? 0,
      median: median(lengths),
      max: lengths.at(-1) ?? 0,
    },
    longest,
    mistakeStepTypes: count(logs.map(({ raw }) => typeName(raw.mistake_step))),
    levelTypes: count(logs.map(({ raw }) => typeName(raw.level))),
    verdicts: count(
      logs.flatMap(({ raw }) =>
        WHO_AND_WHEN_SUBSETS.filter(({ verdict }) => verdict in raw).map(
          ({ verdict }) => `${verdict}: ${raw[verdict]}`,
        ),
      ),
    ),
    speakerField: subset.speaker,
    labelIsSpeaker: {
      zeroBased: logs.length - notSpeaker.length,
      oneBased: trajectories.filter((trajectory) => labelFits(trajectory, 1)).length,
    },
    labelNotSpeaker: notSpeaker.map(name),
    labelSteps: { min: Math.min(...labelSteps), max: Math.max(...labelSteps) },
    oddKeys: oddKeys(logs),
    ...namesOf(trajectories),
    emptySteps: trajectories.flatMap((trajectory) =>
      trajectory.steps
        .filter((step) => step.content.trim() === "")
        .map((step) => ({ log: name(trajectory), step: step.index })),
    ),
    duplicateHistories: duplicateHistories(trajectories).map((group) => ({
      logs: group.map(name),
      sameLabel: new Set(group.map(({ labels }) => JSON.stringify(labels.map((l) => [l.agent, l.step])))).size === 1,
    })),
    questionNotInHistory: trajectories
      .filter(({ task, steps }) => !steps.some((step) => step.content.includes(task.text)))
      .map(name),
    clean: cleanSubset(trajectories).length,
  };
}

/** True if every label names the speaker of its step, with steps counted from `base`. */
function labelFits(trajectory: Trajectory, base: number): boolean {
  return trajectory.labels.every(
    (label) => labelInconsistency(trajectory, { ...label, step: label.step - base }) === undefined,
  );
}

function namesOf(trajectories: readonly Trajectory[]): Pick<SubsetAudit, "remarks" | "hyphenNames"> {
  const steps = trajectories.flatMap((trajectory) => trajectory.steps);
  const raws = Object.entries(count(steps.map((step) => step.agent)));
  const labelled = trajectories.flatMap((trajectory) => trajectory.labels.map((label) => label.agent));
  const agents = new Set([...steps.map((step) => step.agent), ...labelled].map(stripRemark));
  return {
    remarks: raws
      .map(([raw, occurrences]) => ({ raw, agent: stripRemark(raw), steps: occurrences }))
      .filter(({ raw, agent }) => raw.trim() !== agent)
      .sort((a, b) => b.steps - a.steps),
    hyphenNames: [...agents].filter((agent) => agent.includes("-")).sort(),
  };
}

function oddKeys(logs: readonly AuditedLog[]): SubsetAudit["oddKeys"] {
  const holders = new Map<string, string[]>();
  for (const { log, raw } of logs) {
    for (const key of Object.keys(raw)) holders.set(key, [...(holders.get(key) ?? []), log]);
  }
  return [...holders]
    .filter(([key, inLogs]) => !KNOWN_FIELDS.includes(key) && inLogs.length <= logs.length * ODD_SHARE)
    .map(([key, inLogs]) => ({ key, logs: inLogs }));
}

function charactersOf(trajectory: Trajectory): number {
  return trajectory.steps.reduce((sum, { content }) => sum + content.length - (content.match(PAIR)?.length ?? 0), 0);
}

/** A code point that takes two of a string's units. */
const PAIR = /[\u{10000}-\u{10ffff}]/gu;

function typeName(value: unknown): string {
  if (value === undefined) return "missing";
  return typeof value === "number" && Number.isInteger(value) ? "int" : typeof value;
}

function count(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}

/** Of sorted numbers; the mean of the middle two where their number is even. */
function median(sorted: readonly number[]): number {
  const upper = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
  return (lower + upper) / 2;
}
