import Table from "cli-table3";
import type { SubsetAudit, WhoAndWhenAudit } from "./audit.ts";

/** The audit as a plain table for the terminal: one row per fact, one column per subset. */
export function renderAudit(report: WhoAndWhenAudit): string {
  const table = new Table({
    head: ["", ...report.subsets.map((subset) => subset.subset)],
    style: { head: [], border: [] },
    wordWrap: true,
    colWidths: [26, ...report.subsets.map(() => 46)],
  });
  for (const [fact, render] of FACTS) table.push([fact, ...report.subsets.map(render)]);
  const { shared, of } = report.sharedQuestions;
  return `${table.toString()}\nHand-Crafted questions that occur in Algorithm-Generated too: ${shared} of ${of}\n`;
}

const FACTS: readonly (readonly [string, (subset: SubsetAudit) => string])[] = [
  ["logs", ({ logs }) => String(logs)],
  ["steps", ({ steps }) => `${steps.total} in all; ${steps.min} to ${steps.max} a log, median ${steps.median}`],
  ["longest log", ({ longest }) => `${longest.log}: ${longest.characters} characters`],
  ["mistake_step is", ({ mistakeStepTypes }) => counts(mistakeStepTypes)],
  ["labelled steps", ({ labelSteps }) => `${labelSteps.min} to ${labelSteps.max}`],
  [
    "label = speaker of step",
    ({ labelIsSpeaker }) => `${labelIsSpeaker.zeroBased} counted from 0, ${labelIsSpeaker.oneBased} counted from 1`,
  ],
  ["label is not speaker", ({ labelNotSpeaker }) => list(labelNotSpeaker)],
  ["level is", ({ levelTypes }) => counts(levelTypes)],
  ["verdict", ({ verdicts }) => counts(verdicts)],
  [
    "odd keys",
    ({ oddKeys }) =>
      list(
        oddKeys.map(({ key, logs }) => `${key} in ${logs.join(", ")}`),
        "; ",
      ),
  ],
  ["speaker field", ({ speakerField }) => speakerField],
  [
    "remarks stripped",
    ({ remarks }) =>
      list(
        remarks.map(({ raw, steps }) => `${raw}: ${steps}`),
        "\n",
      ),
  ],
  ["hyphens in names", ({ hyphenNames }) => list(hyphenNames)],
  ["empty steps", ({ emptySteps }) => list(emptySteps.map(({ log, step }) => `${log}[${step}]`))],
  [
    "same history",
    ({ duplicateHistories }) =>
      list(
        duplicateHistories.map(({ logs, sameLabel }) => `${logs.join(" = ")} (${sameLabel ? "same" : "other"} label)`),
      ),
  ],
  ["question not in history", ({ questionNotInHistory }) => list(questionNotInHistory)],
  ["clean subset", ({ clean, logs }) => `${clean} of ${logs}`],
];

function list(items: readonly string[], separator = ", "): string {
  return items.length === 0 ? "none" : items.join(separator);
}

function counts(record: Readonly<Record<string, number>>): string {
  return list(Object.entries(record).map(([key, number]) => `${key} (${number})`));
}
