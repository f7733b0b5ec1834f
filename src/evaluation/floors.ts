import { mostTalkative } from "../methods/shared/most-talkative.ts";
import { agentsOf } from "../methods/view.ts";
import { normalizeAgent, sameAgent } from "../trajectory/agent-name.ts";
import type { EvaluationItem } from "./datasets.ts";
import { bestConstant, type Floor, mostFrequentAgent, TOLERANCES, type Tolerance } from "./floor.ts";
import { layoutFloors } from "./layout-floor.ts";

export interface FloorSettings {
  /** Left out of the second most-talkative floor: it runs code and is seldom blamed. */
  readonly withoutAgents?: readonly string[] | undefined;
  /** Labelled runs to learn the layout floors from; without them there are none. */
  readonly train?: readonly EvaluationItem[] | undefined;
}

const DEFAULT_WITHOUT = ["Computer_terminal"];

/**
 * The floors of a set:
 * - constant step: the best single index (smallest of equals), chosen on the set itself, so it is as hard as a constant can be;
 * - random step: uniform over the log's steps, its expectation;
 * - last step;
 * - the true agent's first turn (an oracle: the label names the agent);
 * - constant agent: the most blamed name (first by name of equals);
 * - random agent: uniform over the distinct agents of the log, the user's or tool's turns included, its expectation;
 * - most talkative agent: most turns; of k that tie each counts 1/k; once more with some agents left out; and, a floor of
 *   our own that beats these on Who&When, most characters with the same agents left out;
 * - with training runs: per layout (the sequence of agents) the most frequent label.
 */
export function floorsFor(items: readonly EvaluationItem[], settings: FloorSettings = {}): Floor[] {
  if (items.length === 0) return [];
  const without = settings.withoutAgents ?? DEFAULT_WITHOUT;
  return [
    ...TOLERANCES.flatMap((tolerance) => stepFloors(items, tolerance)),
    ...agentFloors(items, without),
    ...(settings.train === undefined ? [] : layoutFloors(items, settings.train)),
  ];
}

/** The highest floor of a column that a result has to clear; undefined for a column without floors. */
export function highestFloor(
  floors: readonly Floor[],
  column: Floor["column"],
  tolerance: Tolerance = 0,
): Floor | undefined {
  return floors
    .filter((floor) => floor.column === column && floor.tolerance === tolerance && !floor.oracle && floor.ours !== true)
    .reduce<Floor | undefined>(
      (best, floor) => (best === undefined || floor.value > best.value ? floor : best),
      undefined,
    );
}

const mean = (items: readonly EvaluationItem[], chance: (item: EvaluationItem) => number): number =>
  items.reduce((total, item) => total + chance(item), 0) / items.length;

function stepFloors(items: readonly EvaluationItem[], tolerance: Tolerance): Floor[] {
  const near = (guess: number | undefined, item: EvaluationItem): boolean =>
    guess !== undefined && Math.abs(guess - item.label.step) <= tolerance;
  const floor = (id: Floor["id"], value: number, detail: string, oracle = false): Floor => ({
    id,
    column: "step",
    tolerance,
    value,
    n: items.length,
    detail,
    oracle,
  });
  const constant = bestConstant(
    items.map((item) => item.label.step),
    tolerance,
  );
  return [
    floor(
      "constant-step",
      mean(items, (item) => (near(constant, item) ? 1 : 0)),
      `always ${constant}`,
    ),
    floor(
      "random-step",
      mean(items, (item) => nearSteps(item, tolerance) / item.trajectory.steps.length),
      "expectation",
    ),
    floor(
      "last-step",
      mean(items, (item) => (near(item.trajectory.steps.length - 1, item) ? 1 : 0)),
      "",
    ),
    floor(
      "true-agent-first-turn",
      mean(items, (item) => (near(firstTurnOf(item), item) ? 1 : 0)),
      "knows the agent",
      true,
    ),
  ];
}

/** How many of the log's steps lie within the tolerance of the label. */
function nearSteps(item: EvaluationItem, tolerance: number): number {
  const low = Math.max(0, item.label.step - tolerance);
  const high = Math.min(item.trajectory.steps.length - 1, item.label.step + tolerance);
  return Math.max(0, high - low + 1);
}

function firstTurnOf({ trajectory, label }: EvaluationItem): number | undefined {
  return trajectory.steps.find((step) => sameAgent(step.agent, label.agent))?.index;
}

function agentFloors(items: readonly EvaluationItem[], without: readonly string[]): Floor[] {
  const floor = (id: Floor["id"], value: number, detail: string): Floor => ({
    id,
    column: "agent",
    tolerance: 0,
    value,
    n: items.length,
    detail,
    oracle: false,
  });
  /** The chance to hit when one of these is drawn. */
  const draw = (candidates: readonly string[], item: EvaluationItem): number =>
    candidates.some((agent) => sameAgent(agent, item.label.agent)) ? 1 / candidates.length : 0;
  const blamed = mostFrequentAgent(items.map((item) => item.label.agent));
  return [
    floor(
      "constant-agent",
      mean(items, (item) => (sameAgent(blamed, item.label.agent) ? 1 : 0)),
      `always ${blamed}`,
    ),
    floor(
      "random-agent",
      mean(items, (item) => draw(agentsOf(item.trajectory), item)),
      "expectation",
    ),
    floor(
      "most-talkative-agent",
      mean(items, (item) => draw(mostTalkative(item.trajectory), item)),
      "most turns",
    ),
    floor(
      "most-talkative-agent-without",
      mean(items, (item) => draw(mostTalkative(item.trajectory, without), item)),
      `most turns, without ${without.join(", ")}`,
    ),
    {
      ...floor(
        "most-talkative-by-characters",
        mean(items, (item) => draw(mostCharacters(item, without), item)),
        `most characters, without ${without.join(", ")}`,
      ),
      ours: true,
    },
  ];
}

/** The agents that write most, all that tie. */
function mostCharacters({ trajectory }: EvaluationItem, exclude: readonly string[]): string[] {
  const excluded = new Set(exclude.map(normalizeAgent));
  const characters = new Map<string, number>();
  for (const { agent, content } of trajectory.steps) {
    const key = normalizeAgent(agent);
    if (!excluded.has(key)) characters.set(key, (characters.get(key) ?? 0) + content.length);
  }
  const most = Math.max(0, ...characters.values());
  return [...characters].filter(([, count]) => count === most).map(([agent]) => agent);
}
