import type { PairedComparison } from "../evaluation/compare.ts";
import type { Floor } from "../evaluation/floor.ts";
import { highestFloor } from "../evaluation/floors.ts";
import type { GroupScores, Scores } from "../evaluation/score.ts";
import { cellText } from "./evaluation-report.ts";
import { textTable } from "./table.ts";

/** A tracer before and after training, on the same held-out runs. */
export interface TracerComparison {
  readonly trainedOn: number;
  /** Share of rollouts (temperature 1, training runs) that name the labelled step, in the first and in the last step. */
  readonly sampled: { readonly first: number; readonly last: number };
  /** Held-out runs, and how many of them the tracer can read. */
  readonly offered: number;
  readonly n: number;
  readonly floors: readonly Floor[];
  readonly before: Scores;
  readonly after: Scores;
  /** On the problems that the shipped weights were never trained on either. */
  readonly unseen: { readonly before: Scores; readonly after: Scores };
  readonly step: PairedComparison | undefined;
  readonly agent: PairedComparison | undefined;
}

const percent = (value: number): string => (100 * value).toFixed(2);

/** Step and agent accuracy before and after, beside the best floor, in all and by task set. */
export function tracerTable(comparison: TracerComparison): string {
  const { floors, before, after, n, offered, trainedOn, sampled, unseen } = comparison;
  const floor = (column: "step" | "agent"): string => {
    const highest = highestFloor(floors, column);
    return highest === undefined ? "–" : `${percent(highest.value)} ${highest.id} n=${n}`;
  };
  const scored = (name: string, scores: GroupScores | undefined): string[] =>
    scores === undefined ? [name, "–", "–"] : [name, cellText(scores.strict.step), cellText(scores.strict.agent)];
  const table = textTable(
    `Embedded tracer on ${n} of ${offered} held-out failed runs (the others hold numbers it cannot read), greedy, with reference`,
    ["percent [95%]", "step", "agent"],
    [
      ["best floor", floor("step"), floor("agent")],
      scored("before GRPO (warm start)", before),
      scored(`after GRPO on ${trainedOn} runs`, after),
      ["change", change(comparison.step), change(comparison.agent)],
      ...Object.keys(after.byGroup).flatMap((subset) => [
        scored(`  ${subset}, before`, before.byGroup[subset]),
        scored(`  ${subset}, after`, after.byGroup[subset]),
      ]),
      scored("  unseen by the warm start, before", unseen.before),
      scored("  unseen by the warm start, after", unseen.after),
    ],
  );
  const remarks = [
    `Exact McNemar: step p=${pValue(comparison.step)}, agent p=${pValue(comparison.agent)}. Format gate passed: before ${passed(before)}, after ${passed(after)}.`,
    `Rollouts at temperature 1 on training runs: ${percent(sampled.first)}% right step before the first update, ${percent(sampled.last)}% at the last.`,
    "The warm start imitates imperfect labels: it can recompute a chain but tends to blame a later step (data/embedded/README.md).",
    "Wilson intervals take runs as independent; the interval of the change is clustered by problem.",
  ];
  return [table, ...remarks].join("\n");
}

function change(compared: PairedComparison | undefined): string {
  if (compared === undefined) return "–";
  const { mean, interval } = compared.difference;
  return `${mean >= 0 ? "+" : ""}${percent(mean)} [${percent(interval.low)}, ${percent(interval.high)}]`;
}

function pValue(compared: PairedComparison | undefined): string {
  return compared?.mcNemar?.pValue.toPrecision(2) ?? "–";
}

function passed({ parseFailures }: Scores): string {
  return `${parseFailures.n - parseFailures.hits} of ${parseFailures.n}`;
}
