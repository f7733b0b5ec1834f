import { sha256 } from "../../src/checksum.ts";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { contentKey } from "../../src/models/content-key.ts";
import { costSince } from "../ledger/cost.ts";
import { type Kept, keyOfKept, type PartName, type ProbeName } from "../ledger/kept.ts";
import type { createReplayExperiment } from "../search/replay-experiment.ts";
import type { Meter } from "./meter.ts";

/** Finished parts of one unit: those of earlier attempts are taken up, new ones are handed on as they come. */
export interface UnitParts {
  find(name: PartName): Kept | undefined;
  add(part: Kept): void;
}

export function createUnitParts(kept: readonly Kept[], onPart: (part: Kept) => void): UnitParts {
  const known = new Map(kept.map((part) => [keyOfKept(part), part]));
  return {
    find: (name) => known.get(keyOfKept(name)),
    add(part) {
      known.set(keyOfKept(part), part);
      onPart(part);
    },
  };
}

/** The analyzer with a memory: an answer once paid for is not asked for again. */
export function rememberedAnalyzer(analyzer: ChatModel, trajectory: string, parts: UnitParts, meter: Meter): ChatModel {
  return remembered(analyzer, trajectory, parts, meter, (request, options) =>
    contentKey([request, options?.epoch ?? 0]),
  );
}

/**
 * A model with a memory of what the attempts before this one were answered: the n-th time that this attempt asks the same gets
 * what the n-th time was answered then. A system that asks the same again is thus answered anew, as it would be without.
 */
export function rememberedModel(model: ChatModel, trajectory: string, parts: UnitParts, meter: Meter): ChatModel {
  const asked = new Map<string, number>();
  return remembered(model, trajectory, parts, meter, (request) => {
    const key = contentKey(request);
    const times = asked.get(key) ?? 0;
    asked.set(key, times + 1);
    return `${key} ${times}`;
  });
}

function remembered(
  model: ChatModel,
  trajectory: string,
  parts: UnitParts,
  meter: Meter,
  nameOf: (...asked: Parameters<ChatModel["complete"]>) => string,
): ChatModel {
  return {
    id: model.id,
    async complete(request, options) {
      const name = { kind: "answer", trajectory, request: nameOf(request, options) } as const;
      const known = parts.find(name);
      if (known?.kind === "answer") {
        meter.add(known.cost);
        return known.response;
      }
      const before = meter.total();
      const response = await model.complete(request, options);
      parts.add({ ...name, response, cost: costSince(before, meter.total()) });
      return response;
    },
  };
}

type Experiment = ReturnType<typeof createReplayExperiment>;

/** The experiment with a memory: a rerun of the same name is made once, whoever began the unit. */
export function rememberedExperiment(
  inner: Experiment,
  trajectory: string,
  parts: UnitParts,
  meter: Meter,
): Experiment {
  let spared = 0;
  const editOf = async (arm: ProbeName["arm"], step: number): Promise<string> => {
    if (arm !== "treated") return arm === "control" ? "recorded" : arm;
    if (!(await inner.hasCorrection(step))) return "recorded";
    const correction = inner.corrections().find((made) => made.step === step);
    return sha256(correction?.action ?? "").slice(0, 16);
  };
  return {
    length: inner.length,
    hasCorrection: (step) => inner.hasCorrection(step),
    hasArm: (arm, step) => inner.hasArm(arm, step),
    async rerun(arm, step, replicate) {
      const name = { kind: "probe", trajectory, step, arm, edit: await editOf(arm, step), replicate } as const;
      const known = parts.find(name);
      if (known?.kind === "probe") {
        spared += known.liveCalls;
        meter.add(known.cost);
        return known.success;
      }
      const before = { calls: inner.liveCalls, cost: meter.total() };
      const success = await inner.rerun(arm, step, replicate);
      const liveCalls = inner.liveCalls - before.calls;
      parts.add({ ...name, success, liveCalls, cost: costSince(before.cost, meter.total()) });
      return success;
    },
    get liveCalls() {
      return inner.liveCalls + spared;
    },
    corrections: () => inner.corrections(),
    rejected: () => inner.rejected(),
    analyzerTally: () => inner.analyzerTally(),
  };
}
