import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import type { Prediction } from "../../src/evaluation/prediction.ts";
import { scorePredictions } from "../../src/evaluation/score.ts";
import { officialCompat, strict } from "../../src/evaluation/scorers.ts";
import { shippedPath } from "../../src/package-root.ts";

interface Log {
  readonly id: string;
  readonly half: string;
  readonly history: readonly Readonly<Record<string, string>>[];
  readonly mistake_agent: string;
  readonly mistake_step: string;
}

/** The files themselves, read by nothing of rootstep's. */
const logs: Log[] = [
  ["Algorithm-Generated", "algorithm-generated"],
  ["Hand-Crafted", "hand-crafted"],
].flatMap(([folder, slug]) =>
  readdirSync(shippedPath("data", "who_and_when", folder!))
    .filter((name) => name.endsWith(".json"))
    .map((name) => ({
      ...JSON.parse(readFileSync(join(shippedPath("data", "who_and_when", folder!), name), "utf8")),
      id: `${slug}/${name.slice(0, -5)}`,
      half: folder,
    })),
);

/**
 * What the benchmark's evaluate.py does with strings: `actual in predicted`. A prediction without the field is the empty
 * string there.
 */
const contains = (predicted: string, actual: string): boolean => predicted.indexOf(actual) >= 0;
const independent = (log: Log, agent: string | null, step: number | null) => ({
  agent: contains(agent ?? "", log.mistake_agent),
  step: contains(step === null ? "" : `${step}`, log.mistake_step),
});

/** Answers made to catch a scorer out. */
function hostileAgents(log: Log): (string | null)[] {
  const { mistake_agent: gold } = log;
  const speakers = new Set(log.history.map((entry) => entry.name ?? entry.role!));
  return [
    null,
    "",
    gold,
    ` ${gold}\n`,
    gold.toUpperCase(),
    gold.slice(1),
    gold.slice(0, -1),
    `${gold} (thought)`,
    `not ${gold}, but another`,
    `${gold}${gold}`,
    gold.replaceAll("_", " "),
    gold.normalize("NFD"),
    [...gold].reverse().join(""),
    "Orchestrator, WebSurfer, Assistant, FileSurfer, ComputerTerminal",
    ...speakers,
  ];
}

function hostileSteps(log: Log): (number | null)[] {
  const gold = Number(log.mistake_step);
  const twisted = [-gold, -gold - 1, gold * 10, gold + 10, gold + 100, Number(`1${gold}`), Number(`${gold}${gold}`)];
  return [null, -1, Number.MAX_SAFE_INTEGER, 1e21, ...twisted, ...log.history.map((_, index) => index)];
}

describe("official-compat", async () => {
  const { items } = await loadWhoAndWhen();
  const itemOf = new Map(items.map((item) => [item.id, item]));

  it("equals an independent substring scorer on all 184 logs, whatever is answered", () => {
    expect(logs).toHaveLength(184);
    let compared = 0;
    for (const log of logs) {
      const gold = itemOf.get(log.id)!.label;
      for (const agent of hostileAgents(log)) {
        expect(officialCompat.agent({ agent, step: null }, gold), `${log.id}: ${agent}`).toBe(
          independent(log, agent, null).agent,
        );
        compared++;
      }
      for (const step of hostileSteps(log)) {
        expect(officialCompat.step({ agent: null, step }, gold), `${log.id}: ${step}`).toBe(
          independent(log, null, step).step,
        );
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(7_000);
  });

  it("gives the same table as the independent scorer for a run of hostile predictions", () => {
    const predictions = logs.map((log, i): Prediction => {
      const agents = hostileAgents(log);
      const steps = hostileSteps(log);
      return {
        itemId: log.id,
        epoch: 0,
        method: "hostile",
        agent: agents[(i * 7) % agents.length]!,
        step: steps[(i * 5) % steps.length]!,
        evidence: [],
        parsePath: "prose",
        calls: 0,
        latencyMs: 0,
      };
    });
    const { byGroup } = scorePredictions(items, predictions);
    for (const half of ["Algorithm-Generated", "Hand-Crafted"]) {
      const right = logs.map((log, i) => ({ log, ...independent(log, predictions[i]!.agent, predictions[i]!.step) }));
      const inHalf = right.filter(({ log }) => log.half === half);
      expect(byGroup[half]!.officialCompat.agent.hits).toBe(inHalf.filter((one) => one.agent).length);
      expect(byGroup[half]!.officialCompat.step.hits).toBe(inHalf.filter((one) => one.step).length);
      expect(byGroup[half]!.officialCompat.both.hits).toBe(inHalf.filter((one) => one.agent && one.step).length);
    }
  });

  // The design's figures, from a separate program over the files.
  it("takes 214 of the 2,935 wrong steps of Hand-Crafted for right, in 22 logs, and none of Algorithm-Generated", () => {
    const wrong = (half: string) =>
      logs
        .filter((log) => log.half === half)
        .flatMap((log) => log.history.map((_, step) => ({ gold: itemOf.get(log.id)!.label, step, id: log.id })))
        .filter(({ gold, step }) => !strict.step({ agent: null, step }, gold));
    const accepted = (half: string) =>
      wrong(half).filter(({ gold, step }) => officialCompat.step({ agent: null, step }, gold));
    expect(wrong("Hand-Crafted")).toHaveLength(2_935);
    expect(accepted("Hand-Crafted")).toHaveLength(214);
    expect(new Set(accepted("Hand-Crafted").map(({ id }) => id)).size).toBe(22);
    expect(wrong("Algorithm-Generated")).toHaveLength(1_099 - 126);
    expect(accepted("Algorithm-Generated")).toHaveLength(0);
  });
});
