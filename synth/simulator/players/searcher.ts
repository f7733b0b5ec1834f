import type { RandomStream } from "../../../src/random.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import { inProse } from "../../inject/text.ts";
import { type Paragraph, searchableOf } from "../../tasks/hotpotqa/hotpotqa.ts";
import { exactMatch } from "../../tasks/hotpotqa/score.ts";
import type { Player, Turn } from "./player.ts";
import type { LogEntry } from "./team-prompt.ts";

/**
 * Plays planner, searcher, reader and answerer on HotpotQA. The searcher goes by the planner's topic, the reader by what the
 * library gave, and the answerer knows the answer only if the supporting sentences of every hop stand in the notes: else it
 * takes a title that does.
 */
export const searcherPlayer: Player = {
  length: (task) => 3 * hopsOf(task).length + 1,
  right(turn) {
    const { task, agent, log } = turn;
    switch (agent) {
      case "planner":
        return plan(hopsOf(task), planned(log));
      case "searcher":
        return `Search[${/look up (.*?)(?: \(last\))?$/u.exec(log.at(-1)?.content ?? "")?.[1] ?? task.text}]`;
      case "reader":
        return `Note: ${noteFrom(task, log.at(-1)?.observations.at(-1) ?? "")}`;
      default:
        return `Answer: ${isSupported(task, log) ? (task.referenceAnswer ?? "") : guess(task, log)}`;
    }
  },
  wrong({ task, agent, log }, right, random) {
    const { paragraphs } = searchableOf(task);
    const gold = new Set(hopsOf(task).map(({ title }) => title));
    const others = paragraphs.filter(({ title }) => !gold.has(title) && !right.includes(title));
    const other = others.length === 0 ? undefined : random.pick(others).title;
    switch (agent) {
      case "planner":
        return other === undefined
          ? undefined
          : right.replace(/look up .*?(?= \(last\)$|$)/u, () => `look up ${other}`);
      case "searcher":
        return other === undefined ? undefined : `Search[${other}]`;
      case "reader":
        return missedNote(task, log, right, random);
      default: {
        const wrong = guess(task, log);
        return exactMatch(wrong, task.referenceAnswer ?? "") ? undefined : `Answer: ${wrong}`;
      }
    }
  },
  correction({ task, agent, log }: Turn) {
    const hops = hopsOf(task);
    const hop = hops[Math.max(0, planned(log) - 1)] ?? hops[0];
    switch (agent) {
      case "planner":
        return plan(hops, planned(log));
      case "searcher":
        return `Search[${hop?.title ?? ""}]`;
      case "reader":
        return `Note: ${hop === undefined ? "" : supportingIn(hop)}`;
      default:
        return `Answer: ${task.referenceAnswer ?? ""}`;
    }
  },
};

interface Hop {
  readonly title: string;
  readonly paragraph: Paragraph;
  readonly supporting: readonly number[];
}

/** The paragraphs to look up, in the order of the supporting facts. */
function hopsOf(task: Task): readonly Hop[] {
  const { paragraphs, supporting } = searchableOf(task);
  const titles = [...new Set(supporting.map(({ title }) => title))];
  return titles.flatMap((title) => {
    const paragraph = paragraphs.find((one) => one.title === title);
    const sentences = supporting.filter((fact) => fact.title === title).map(({ sentence }) => sentence);
    return paragraph === undefined ? [] : [{ title, paragraph, supporting: sentences }];
  });
}

const planned = (log: readonly LogEntry[]): number => log.filter(({ agent }) => agent === "planner").length;

function plan(hops: readonly Hop[], done: number): string {
  const hop = hops[Math.min(done, hops.length - 1)];
  return `Hop ${done + 1}: look up ${hop?.title ?? "the question"}${done + 1 >= hops.length ? " (last)" : ""}`;
}

const supportingIn = ({ paragraph, supporting }: Hop): string =>
  supporting.map((at) => paragraph.sentences[at]?.trim() ?? "").join(" ");

/** The supporting sentences if the library gave a supporting paragraph, else the first sentence of what it gave. */
function noteFrom(task: Task, shown: string): string {
  const found = paragraphIn(task, shown);
  const hop = hopsOf(task).find(({ title }) => title === found?.title);
  return hop === undefined ? (found?.sentences[0]?.trim() ?? "nothing of use.") : supportingIn(hop);
}

function paragraphIn(task: Task, shown: string): Paragraph | undefined {
  return searchableOf(task).paragraphs.find(({ title }) => shown.startsWith(`[${title}] `));
}

/**
 * The note with one of its sentences taken for another of the same paragraph, or, where all are noted, its subject for
 * another: what helps is not all there.
 */
function missedNote(task: Task, log: readonly LogEntry[], right: string, random: RandomStream): string {
  const found = paragraphIn(task, log.at(-1)?.observations.at(-1) ?? "");
  const sentences = found?.sentences.map((one) => one.trim()).filter((one) => one !== "") ?? [];
  const [noted, others] = [true, false].map((isIn) => sentences.filter((one) => right.includes(one) === isIn));
  if (noted !== undefined && others !== undefined && noted.length > 0 && others.length > 0) {
    const [missed, other] = [random.pick(noted), random.pick(others)];
    return right.replace(missed, () => other);
  }
  const subject = found === undefined ? undefined : inProse(found.title);
  const confused = searchableOf(task).paragraphs.filter(({ title }) => inProse(title) !== subject);
  if (subject === undefined || !right.includes(subject) || confused.length === 0) return "Note: nothing of use.";
  const { title } = random.pick(confused);
  return right.replace(subject, () => inProse(title));
}

function isSupported(task: Task, log: readonly LogEntry[]): boolean {
  const notes = log.filter(({ agent }) => agent === "reader").map(({ content }) => content);
  return hopsOf(task).every((hop) => notes.some((note) => note.includes(supportingIn(hop))));
}

/** What stands in the log, right or wrong: for yes and no the other one, else the title that was looked up first. */
function guess(task: Task, log: readonly LogEntry[]): string {
  if (task.referenceAnswer === "yes") return "no";
  if (task.referenceAnswer === "no") return "yes";
  const queries = log.filter(({ agent }) => agent === "searcher").map(({ content }) => content);
  const titles = queries.map((query) => /Search\[(.*)\]/u.exec(query)?.[1] ?? query);
  return titles.find((title) => !exactMatch(title, task.referenceAnswer ?? "")) ?? "unknown";
}
