import type { Attribution } from "../../src/methods/method.ts";
import { sameAgent } from "../../src/trajectory/agent-name.ts";

/** What an attribution method said about a run; a line of predictions.jsonl is one. */
export interface Opinion extends Pick<Attribution, "agent" | "step"> {
  readonly ranking?: Attribution["ranking"] | undefined;
}

/**
 * The weights over t* that a method's answer stands for: how probable each step is as the decisive one.
 *
 * The model of the method's confusions has one parameter, `strength`, the probability that the step it names is the right
 * one; otherwise it is any other step alike. So a named step gets `strength`, the others share the rest, and none gets 0.
 * Where only an agent is named, its steps share `strength`. A ranking halves the strength from place to place (the scores of
 * methods have no common scale). Where a method names nothing that stands in the run, it has no opinion.
 *
 * @param agents who acted at each step
 * @param strength in (0, 1): the method's step accuracy on such runs, as `eval run` reports it
 * @returns T weights that sum to 1, or undefined where the answer says nothing
 */
export function weightsOf(opinion: Opinion, agents: readonly string[], strength: number): number[] | undefined {
  const places = placesOf(opinion, agents);
  const named = new Set(places.flat());
  if (named.size === 0) return undefined;
  const others = agents.length - named.size;
  // Where every step is named, the ranking alone speaks.
  const share = others === 0 ? 1 : strength;
  const weights = agents.map((_, step) => (named.has(step) ? 0 : (1 - share) / others));
  const halves = places.map((_, place) => 0.5 ** place);
  const total = halves.reduce((sum, half) => sum + half, 0);
  places.forEach((steps, place) => {
    for (const step of steps) weights[step] = (share * (halves[place] ?? 0)) / total / steps.length;
  });
  return weights;
}

/** The mean of several answers about one run (epochs); answers without an opinion are left out. */
export function pooledWeights(
  opinions: readonly Opinion[],
  agents: readonly string[],
  strength: number,
): number[] | undefined {
  const all = opinions.flatMap((opinion) => {
    const weights = weightsOf(opinion, agents, strength);
    return weights === undefined ? [] : [weights];
  });
  if (all.length === 0) return undefined;
  return agents.map((_, step) => all.reduce((sum, weights) => sum + (weights[step] ?? 0), 0) / all.length);
}

/** The steps named, best first; steps that share a place are equally meant. No step stands twice. */
function placesOf({ agent, step, ranking = [] }: Opinion, agents: readonly string[]): number[][] {
  const isThere = (at: number | null): at is number => at !== null && at in agents;
  if (ranking.length > 0) {
    const steps = [...new Set(ranking.map((candidate) => candidate.step).filter(isThere))];
    if (steps.length > 0) return steps.map((at) => [at]);
  }
  if (isThere(step)) return [[step]];
  if (agent === null) return [];
  const acted = agents.flatMap((name, at) => (sameAgent(name, agent) ? [at] : []));
  return acted.length === 0 ? [] : [acted];
}
