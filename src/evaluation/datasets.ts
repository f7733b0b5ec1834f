import { sha256 } from "../checksum.ts";
import { isError, RootstepError } from "../errors.ts";
import { cleanSubset } from "../formats/clean-subset.ts";
import { detectFormat, formatById } from "../formats/registry.ts";
import { shippedPath } from "../package-root.ts";
import { labelInconsistency } from "../trajectory/invariants.ts";
import type { Label, Trajectory } from "../trajectory/schema.ts";

/** One failed run with the label it is scored against. */
export interface EvaluationItem {
  readonly id: string;
  readonly trajectory: Trajectory;
  readonly label: Label;
  /** Runs of one question are one piece of evidence. */
  readonly groupId: string;
  /** The column of a table it belongs to: "Algorithm-Generated", "Hand-Crafted", a task source. */
  readonly subset: string;
}

/** Something a reader of the result should know about an item or a record that is none. */
export interface DatasetProblem {
  readonly kind: "label-outside" | "label-not-speaker" | "no-label" | "bad-record" | "not-clean" | "duplicate";
  /** True where the record is left out of the items. */
  readonly dropped: boolean;
  readonly where: string;
  readonly message: string;
  /** Of a remark about a record that is an item all the same. */
  readonly itemId?: string;
}

export interface EvaluationSet {
  readonly name: string;
  readonly items: readonly EvaluationItem[];
  readonly problems: readonly DatasetProblem[];
}

export const WHO_AND_WHEN_CHOICES = ["algorithm-generated", "hand-crafted", "all"] as const;
export type WhoAndWhenChoice = (typeof WHO_AND_WHEN_CHOICES)[number];

interface LoadSettings {
  /** Only labels that name the speaker of their step, only histories that occur once. */
  readonly clean?: boolean | undefined;
  /** Goes on past records that cannot be read and reports them; without it the first ends the loading. */
  readonly skipBad?: boolean | undefined;
  /** What a Who&When-like source counts its first step as; the release counts from 0. */
  readonly indexBase?: 0 | 1 | undefined;
}

/**
 * Who&When: the shipped copy, or a folder laid out like the release.
 *
 * @throws RootstepError FILE_MISSING, DATA_… for a record that cannot be read (unless `skipBad`)
 */
export async function loadWhoAndWhen(
  settings: LoadSettings & { readonly subset?: WhoAndWhenChoice | undefined; readonly dir?: string | undefined } = {},
): Promise<EvaluationSet> {
  const subset = settings.subset ?? "all";
  const { located, problems } = await read(
    "who-and-when",
    settings.dir ?? shippedPath("data", "who_and_when"),
    settings,
  );
  const chosen = located.filter(({ trajectory }) => subset === "all" || trajectory.id.startsWith(`${subset}/`));
  const name = `Who&When ${subset}${settings.clean === true ? " (clean)" : ""}`;
  const { once, copies } = withoutCopies(chosen);
  return evaluationSet(name, once, [...problems, ...copies], settings);
}

/**
 * Labelled trajectories from TracerTraj files, or from any file whose format is recognised.
 *
 * @throws RootstepError FILE_MISSING, DATA_UNKNOWN_FORMAT, DATA_DUPLICATE_ID, DATA_… (unless `skipBad`)
 */
export async function loadTrajectoryFiles(
  files: readonly string[],
  settings: LoadSettings = {},
): Promise<EvaluationSet> {
  const located: Located[] = [];
  const problems: DatasetProblem[] = [];
  for (const file of files) {
    const format = await detectFormat(file);
    if (settings.indexBase !== undefined && format.id !== "who-and-when") {
      throw new RootstepError("CONFIG_INVALID", {
        what: `an index base is given, but ${format.id} says itself how steps are counted`,
        where: file,
      });
    }
    const part = await read(format.id, file, settings);
    located.push(...part.located);
    problems.push(...part.problems);
  }
  const whereOfId = new Map<string, string>();
  for (const { trajectory, where } of located) {
    const earlier = whereOfId.get(trajectory.id);
    if (earlier !== undefined) {
      throw new RootstepError("DATA_DUPLICATE_ID", { what: `${trajectory.id} is in ${earlier} as well`, where });
    }
    whereOfId.set(trajectory.id, where);
  }
  return evaluationSet(files.join(", "), located, problems, settings);
}

interface Located {
  readonly trajectory: Trajectory;
  readonly where: string;
}

async function read(
  formatId: string,
  source: string,
  settings: LoadSettings,
): Promise<{ located: Located[]; problems: DatasetProblem[] }> {
  const located: Located[] = [];
  const problems: DatasetProblem[] = [];
  const onBad = (error: RootstepError): void => {
    const outside = isError(error, "LABEL_OUTSIDE");
    if (!outside && settings.skipBad !== true) throw withFlagOfEval(error);
    const kind = outside ? "label-outside" : "bad-record";
    problems.push({ kind, dropped: true, where: error.where ?? source, message: error.what });
  };
  const { indexBase } = settings;
  for await (const record of formatById(formatId).read(source, { onBad, indexBase })) located.push(record);
  return { located, problems };
}

/** The catalogue's hints name the flag of `data import`; here the setting is another. */
function withFlagOfEval(error: RootstepError): RootstepError {
  const { code, what, where, cause } = error;
  return new RootstepError(code, { what, where, cause, hint: error.hint.replaceAll("--skip-bad", "--data.skip-bad") });
}

function evaluationSet(
  name: string,
  located: readonly Located[],
  readProblems: readonly DatasetProblem[],
  settings: LoadSettings,
): EvaluationSet {
  const problems = [...readProblems];
  const clean = settings.clean === true ? new Set(cleanSubset(located.map((record) => record.trajectory))) : undefined;
  const items: EvaluationItem[] = [];
  for (const { trajectory, where } of located) {
    const label = trajectory.labels.find(isGold);
    if (label === undefined) {
      problems.push({ kind: "no-label", dropped: true, where, message: `${trajectory.id} has no settled label` });
      continue;
    }
    const problem = labelInconsistency(trajectory, label);
    const outside = problem?.kind === "label-outside";
    const unclean = clean !== undefined && !clean.has(trajectory);
    if (problem !== undefined) {
      const kind = outside ? "label-outside" : "label-not-speaker";
      const dropped = outside || unclean;
      const { message } = problem;
      problems.push({ kind, dropped, where, message, ...(!dropped && { itemId: trajectory.id }) });
    } else if (unclean) {
      problems.push({ kind: "not-clean", dropped: true, where, message: `${trajectory.id} shares its history` });
    }
    if (!outside && !unclean) items.push(item(trajectory, label));
  }
  return { name, items, problems };
}

/**
 * Leaves out what says the same as an earlier record: same question, history and label. Ids of the release are file names, so
 * a file that was copied would be counted twice. Histories that occur twice under different labels stay.
 */
function withoutCopies(located: readonly Located[]): { once: Located[]; copies: DatasetProblem[] } {
  const alone = questionsAskedOnce(located);
  const earlier = new Map<string, Located>();
  const once: Located[] = [];
  const copies: DatasetProblem[] = [];
  for (const record of located) {
    if (alone.has(record.trajectory.task.groupId)) {
      once.push(record);
      continue;
    }
    const content = contentOf(record);
    const same = earlier.get(content);
    if (same === undefined) {
      once.push(record);
      earlier.set(content, record);
    } else {
      const message = `${record.trajectory.id} is the same log with the same label as ${same.trajectory.id}`;
      copies.push({ kind: "duplicate", dropped: true, where: record.where, message });
    }
  }
  return { once, copies };
}

/** Questions of a single log: nothing can say the same, so nothing has to be compared. */
function questionsAskedOnce(located: readonly Located[]): Set<string> {
  const seen = new Map<string, number>();
  for (const { trajectory } of located) {
    const { groupId } = trajectory.task;
    seen.set(groupId, (seen.get(groupId) ?? 0) + 1);
  }
  return new Set([...seen].filter(([, count]) => count === 1).map(([groupId]) => groupId));
}

/** Logs of one question that say the same have the same sum; whole contents would be held in memory twice. */
function contentOf({ trajectory: { task, steps, labels } }: Located): string {
  return sha256(
    JSON.stringify([
      task.groupId,
      task.text,
      labels.map(({ agent, step }) => [agent, step]),
      steps.map(({ agent, content }) => [agent, content]),
    ]),
  );
}

/** A search that came to no verdict leaves a label that is no gold. */
function isGold(label: Label): boolean {
  return label.verdict !== "undecided" && label.verdict !== "not-replayable";
}

function item(trajectory: Trajectory, label: Label): EvaluationItem {
  const named = trajectory.extra?.subset;
  const subset = typeof named === "string" ? named : trajectory.task.source;
  return { id: trajectory.id, trajectory, label, groupId: trajectory.task.groupId, subset };
}
