import { stream } from "../../src/random.ts";
import { tracerReward } from "../../src/reward/reward.ts";
import type { TrainingEngine } from "../../trainer/engines/engine.ts";
import { drawFailedRun, type FailedRun } from "./chains.ts";

/** A share with its number of cases and 95% Wilson interval. */
export interface Share {
  readonly share: number;
  readonly low: number;
  readonly high: number;
  readonly n: number;
}

export interface Measured {
  readonly step: Share;
  readonly agent: Share;
  readonly format: Share;
  readonly meanReward: number;
  /** Step accuracy per kind of mistake. */
  readonly byMistake: Readonly<Record<string, number>>;
  /** For each run, whether its step was found: to compare two policies on the same runs. */
  readonly hits: readonly boolean[];
}

/** Distinct failed runs of a split, the same for a name. */
export function runSet(name: string, split: "train" | "held-out", size: number): FailedRun[] {
  const random = stream("embedded sets", name);
  const runs = new Map<string, FailedRun>();
  while (runs.size < size) {
    const run = drawFailedRun(random, split);
    runs.set(run.trajectory.steps.map((step) => step.content).join("\n") + run.trajectory.id, run);
  }
  return [...runs.values()];
}

/** Greedy answers (temperature 0) or sampled ones (1), one per run, against the decisive step. */
export async function measure(
  engine: TrainingEngine,
  runs: readonly FailedRun[],
  temperature: 0 | 1,
): Promise<Measured> {
  const prompts = runs.map((run) => engine.codec.encodePrompt(run.trajectory));
  const completions = await engine.sample({ prompts, n: 1, temperature, seed: "measure" });
  const rewards = runs.map((run, i) =>
    tracerReward(engine.codec.decodeCompletion(completions[i]?.[0]?.tokens ?? []), run.decisive),
  );
  const hits = rewards.map((reward, i) => reward.prediction?.step === runs[i]?.decisive.step);
  const byMistake = Object.fromEntries(
    [...new Set(runs.map((run) => run.mistake))].sort().map((mistake) => {
      const of = hits.filter((_, i) => runs[i]?.mistake === mistake);
      return [mistake, round(of.filter(Boolean).length / of.length)];
    }),
  );
  return {
    step: share(hits),
    agent: share(rewards.map((reward) => reward.agent === 1)),
    format: share(rewards.map((reward) => reward.format === 1)),
    meanReward: round(rewards.reduce((sum, reward) => sum + reward.total, 0) / rewards.length),
    byMistake,
    hits,
  };
}

/** What answers without reading would score on `runs`: modes are taken from `training` runs. */
export function floors(runs: readonly FailedRun[], training: readonly FailedRun[]): Readonly<Record<string, Share>> {
  const layoutOf = (run: FailedRun) => run.trajectory.steps.length;
  const constant = mode(training.map((run) => run.decisive.step));
  const agent = mode(training.map((run) => run.decisive.agent));
  const byLayout = new Map(
    [...new Set(training.map(layoutOf))].map((layout) => [
      layout,
      mode(training.filter((run) => layoutOf(run) === layout).map((run) => run.decisive.step)),
    ]),
  );
  return {
    constantStep: share(runs.map((run) => run.decisive.step === constant)),
    lastStep: share(runs.map((run) => run.decisive.step === layoutOf(run) - 1)),
    layoutModeStep: share(runs.map((run) => run.decisive.step === byLayout.get(layoutOf(run)))),
    mostFrequentAgent: share(runs.map((run) => run.decisive.agent === agent)),
  };
}

/** Share of true cases with its Wilson interval. */
export function share(cases: readonly boolean[]): Share {
  const n = cases.length;
  const p = cases.filter(Boolean).length / n;
  const z = 1.96;
  const centre = p + z ** 2 / (2 * n);
  const half = z * Math.sqrt((p * (1 - p)) / n + z ** 2 / (4 * n ** 2));
  const scale = 1 + z ** 2 / n;
  return { share: round(p), low: round((centre - half) / scale), high: round((centre + half) / scale), n };
}

export function round(x: number, digits = 3): number {
  return Number(x.toFixed(digits));
}

function mode<T>(values: readonly T[]): T | undefined {
  const counts = new Map<T, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}

/** One line for a person. */
export function show(measured: Measured): string {
  const of = ({ share, low, high }: Share) => `${share} [${low}, ${high}]`;
  const { step, agent, format, meanReward, byMistake } = measured;
  return `n ${step.n} step ${of(step)} agent ${of(agent)} format ${format.share} R ${meanReward} ${JSON.stringify(byMistake)}`;
}
