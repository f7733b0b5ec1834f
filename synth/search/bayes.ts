import { type Posterior, posteriorOf } from "./posterior.ts";
import { startingPrior } from "./prior.ts";
import { type Probe, probes } from "./probe.ts";
import { type RunUnderSearch, runUnderSearch } from "./run-under-search.ts";
import type { SearchResult, SearchSettings, SearchStrategy } from "./strategy.ts";

/** Posterior probability at which a step is put to the test, and which it must still have after it. */
const CONVINCED = 0.9;

/** A rerun from which less is to be learnt, in nats, is not worth making. */
const NOTHING_TO_LEARN = 1e-3;

/**
 * Bayesian search: the next rerun is the one that tells most about t* per live call. A step that holds most of the
 * posterior is examined with fresh reruns, and so is its neighbour before. It is the label if the one has an effect, the
 * other has none, and the posterior has not changed its mind.
 *
 * What was only probed stays "undecided" in the evidence: of those steps the posterior alone speaks. Live calls are
 * capped at twice the blocks of one step × T unless the settings say otherwise.
 */
export const bayes: SearchStrategy = {
  id: "bayes",
  title: "most informative rerun per live call, then a fresh test at t* and at the step before",
  async search(experiment, settings, weights) {
    const { length } = experiment;
    const prior = startingPrior(length, weights);
    const run = runUnderSearch(experiment, { ...settings, maxLiveCalls: liveCallCap(settings, length) });
    for (;;) {
      const posterior = posteriorOf(run.tallies, agreeing(prior, run.examined));
      const convincing = posterior.decisive.findIndex((probability) => probability >= CONVINCED);
      if (convincing >= 0 && convincing < length) {
        const next = [convincing, convincing - 1].find((step) => step >= 0 && !run.examined.has(step));
        if (next === undefined) return isEarliest(run, convincing) ? named(run, convincing) : unsettled(run);
        if (run.isSpent()) return unsettled(run);
        await run.examine(next);
        continue;
      }
      const next = convincing === length || run.isSpent() ? undefined : bestProbe(run, posterior, settings);
      if (next === undefined) return unsettled(run);
      await run.probe(next.arm, next.step);
    }
  },
};

/** The rerun with the most information per live call, undefined where none is worth making. */
function bestProbe(run: RunUnderSearch, posterior: Posterior, { maxBlocks }: SearchSettings): Probe | undefined {
  return probes(posterior, run.analyzerCalls)
    .filter(({ information }) => information >= NOTHING_TO_LEARN)
    .filter(({ arm, step }) => (run.tallies[step]?.[arm].runs ?? 0) < maxBlocks)
    .sort((a, b) => b.information / b.cost - a.information / a.cost)[0];
}

function liveCallCap({ maxLiveCalls, maxBlocks }: SearchSettings, length: number): number {
  return maxLiveCalls ?? 2 * maxBlocks * length;
}

/** The prior without what examinations have ruled out: t* has an effect, and no step before it has one. */
function agreeing(prior: readonly number[], examined: RunUnderSearch["examined"]): number[] {
  const left = [...prior];
  for (const { step, decision } of examined.values()) {
    if (decision === "effect") left.fill(0, step + 1);
    if (decision === "no effect") left[step] = 0;
  }
  return left;
}

function isEarliest({ examined }: RunUnderSearch, step: number): boolean {
  const isRefutedBefore = step === 0 || examined.get(step - 1)?.decision === "no effect";
  return examined.get(step)?.decision === "effect" && isRefutedBefore;
}

function named(run: RunUnderSearch, step: number): SearchResult {
  return { verdict: "earliest-confirmed", step, evidence: run.evidence(step) };
}

/** No step is confirmed as the earliest; the earliest with an effect is named, if there is one. */
function unsettled(run: RunUnderSearch): SearchResult {
  const effects = [...run.examined.values()].filter(({ decision }) => decision === "effect");
  if (effects.length === 0) return { verdict: "undecided", evidence: run.evidence(undefined) };
  const step = Math.min(...effects.map((effect) => effect.step));
  return { verdict: "decisive-earlier-undecided", step, evidence: run.evidence(step) };
}
