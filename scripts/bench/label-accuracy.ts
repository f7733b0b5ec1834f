/**
 * Are the labels right, and what do they cost? Each search strategy on the same failed runs with a known decisive step.
 *
 * usage: npx tsx scripts/bench/label-accuracy.ts [--runs 60] [--seed 1] [--source made,simulator]
 *          [--task blackjack,hotpotqa,math-chains,mbppplus] [--regime slip,systematic] [--noise 0,0.1] [--length 8,20] [--strategies paper,exhaustive,bayes,bayes+prior]
 *
 * With `--task`, the failed runs are those of these task sets in place of `--source`'s, at the tasks' own lengths.
 *
 * A cell is a source × regime × noise × length. Accuracy: labels that name the true step, with 95% interval. Coverage:
 * runs with a label. Calls: live model calls, the analyzer's among them. `bayes+prior` starts from an attribution method
 * that is right 45 times in 100 and elsewhere else: `--prior-accuracy`; its answers become weights as those of `search.prior` do.
 */
import { parseArgs } from "node:util";
import { wilsonInterval } from "../../src/evaluation/statistics.ts";
import { stream } from "../../src/random.ts";
import { shareCell, textTable } from "../../src/report/table.ts";
import { synthConfigSchema } from "../../synth/pipeline/config.ts";
import { weightsOf } from "../../synth/search/attribution-prior.ts";
import { searchStrategyById } from "../../synth/search/registry.ts";
import type { SearchSettings } from "../../synth/search/strategy.ts";
import type { FailedRun } from "./failed-run.ts";
import { madeRuns } from "./made-runs.ts";
import { PLAYED, playerRuns } from "./player-runs.ts";
import { simulatedRuns } from "./simulated-runs.ts";

const { values: flags } = parseArgs({
  options: {
    runs: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
    source: { type: "string", default: "made,simulator" },
    task: { type: "string" },
    regime: { type: "string", default: "slip,systematic" },
    noise: { type: "string", default: "0,0.1" },
    length: { type: "string", default: "8,20" },
    strategies: { type: "string", default: "paper,exhaustive,bayes,bayes+prior" },
    "prior-accuracy": { type: "string", default: "0.45" },
    /** The evidence behind each wrong label, but `paper`'s. */
    "show-wrong": { type: "boolean", default: false },
  },
});

const SOURCES = { made: madeRuns, simulator: simulatedRuns } as const;
const seed = Number(flags.seed);
const priorAccuracy = Number(flags["prior-accuracy"]);
const searchSettings: SearchSettings = synthConfigSchema.parse({}).search;
const list = (flag: string): string[] => flag.split(",");

/** What a strategy made of the runs of a cell. */
interface Score {
  readonly runs: number;
  readonly labels: number;
  readonly right: number;
  readonly liveCalls: number;
}

const NOTHING: Score = { runs: 0, labels: 0, right: 0, liveCalls: 0 };

async function tried(strategy: string, run: FailedRun, cell: string): Promise<Score> {
  const experiment = run.open();
  const prior = strategy.endsWith("+prior") ? priorFor(run, cell) : undefined;
  const result = await searchStrategyById(strategy.replace("+prior", "")).search(experiment, searchSettings, prior);
  const isLabel = result.verdict === "earliest-confirmed" || result.verdict === "first-flip";
  const isRight = isLabel && result.step === run.truth;
  if (flags["show-wrong"] && isLabel && !isRight && strategy !== "paper") {
    console.log(`${cell} ${strategy} ${run.id}: truth ${run.truth}, ${result.verdict} ${result.step ?? ""}`);
    for (const { step, treated, control, decision } of result.evidence) {
      console.log(
        `  ${step}: treated ${treated.successes}/${treated.runs} control ${control.successes}/${control.runs} ${decision}`,
      );
    }
  }
  return { runs: 1, labels: Number(isLabel), right: Number(isRight), liveCalls: experiment.liveCalls };
}

/** The belief of a method that names the true step with the given accuracy, and knows how good it is. */
function priorFor({ id, truth, length }: FailedRun, cell: string): number[] {
  const random = stream(seed, "prior", cell, id);
  const others = Array.from({ length }, (_, step) => step).filter((step) => step !== truth);
  const named = random.chance(priorAccuracy) ? truth : random.pick(others);
  const agents = Array.from({ length }, (_, step) => `agent ${step}`);
  const weights = weightsOf({ agent: `agent ${named}`, step: named }, agents, priorAccuracy);
  if (weights === undefined) throw new Error(`no weights for step ${named} of ${length}`);
  return weights;
}

async function measure(title: string, failedRuns: AsyncIterable<FailedRun> | Iterable<FailedRun>): Promise<void> {
  const scores = new Map(list(flags.strategies).map((strategy) => [strategy, NOTHING]));
  let runs = 0;
  for await (const run of failedRuns) {
    if (runs++ >= Number(flags.runs)) break;
    for (const [strategy, score] of scores) {
      const one = await tried(strategy, run, title);
      scores.set(strategy, {
        runs: score.runs + one.runs,
        labels: score.labels + one.labels,
        right: score.right + one.right,
        liveCalls: score.liveCalls + one.liveCalls,
      });
    }
  }
  const perLabel = ({ liveCalls, labels }: Score): number => liveCalls / labels;
  const yardstick = scores.get("exhaustive");
  console.log(
    textTable(
      title,
      ["strategy", "accuracy (%)", "coverage (%)", "calls / label", "of exhaustive"],
      [...scores].map(([strategy, score]) => [
        strategy,
        shareCell(score.right, score.labels, wilsonInterval),
        shareCell(score.labels, score.runs, wilsonInterval),
        score.labels === 0 ? "–" : perLabel(score).toFixed(0),
        yardstick === undefined || yardstick.labels * score.labels === 0
          ? "–"
          : (perLabel(score) / perLabel(yardstick)).toFixed(2),
      ]),
    ),
  );
}

for (const regime of list(flags.regime)) {
  if (regime !== "slip" && regime !== "systematic") throw new Error(`--regime ${regime}: slip or systematic`);
  for (const noise of list(flags.noise).map(Number)) {
    const settings = `${regime}, ${100 * noise}% noise`;
    for (const task of flags.task === undefined ? [] : list(flags.task)) {
      if (!isPlayed(task)) throw new Error(`--task ${task}: one of ${Object.keys(PLAYED).join(", ")}`);
      await measure(`${task}: ${settings}, seed ${seed}`, playerRuns(task, { regime, noise }, seed));
    }
    for (const source of flags.task === undefined ? list(flags.source) : []) {
      if (source !== "made" && source !== "simulator") throw new Error(`--source ${source}: made or simulator`);
      for (const length of list(flags.length).map(Number)) {
        const title = `${source}: ${settings}, T ${source === "made" ? "=" : "≈"} ${length}, seed ${seed}`;
        await measure(title, SOURCES[source]({ regime, noise, length }, seed));
      }
    }
  }
}

function isPlayed(name: string): name is keyof typeof PLAYED {
  return Object.hasOwn(PLAYED, name);
}
