import { openPrior } from "../search/prior-source.ts";
import type { CoordinatorInput, DeadUnit } from "./coordinate.ts";
import { runStage } from "./coordinate.ts";
import type { InjectionRecord, RecordingRecord, SearchRecord, TruthRecord } from "./records.ts";
import { injectStage, recordStage, searchStage, truthStage } from "./stages.ts";
import type { UnitContext } from "./unit-context.ts";
import type { UnitStage } from "./unit-stage.ts";

export interface PipelineInput extends UnitContext, CoordinatorInput {}

export interface PipelineRecords {
  readonly recordings: readonly RecordingRecord[];
  readonly searches: readonly SearchRecord[];
  readonly injections: readonly InjectionRecord[];
  readonly truths: readonly TruthRecord[];
  /** Units that could not be done; the others are complete without them. */
  readonly dead: readonly DeadUnit[];
}

/**
 * Record → search for t* in the failed runs → inject faults into the successful ones. The ledger knows which units are
 * done; each stage's journal is written from it in the order of the units. A unit's result depends on its id and the seed
 * alone, so a run that was killed goes on where it stopped, on any number of workers, and ends with the same records.
 *
 * @throws RootstepError INTERRUPTED, BUDGET_REACHED (everything finished before is in the ledger), MODEL_*
 */
export async function runPipeline(input: PipelineInput): Promise<PipelineRecords> {
  const { config, tasks } = input;
  const dead: DeadUnit[] = [];
  const run = async <P, R>(stage: UnitStage<P, R>, payloads: readonly P[]): Promise<readonly R[]> => {
    const done = await runStage(input, stage, payloads);
    dead.push(...done.dead);
    return done.records;
  };
  const recordings = await run(
    recordStage,
    [...tasks.values()].flatMap(({ id: taskId }) =>
      Array.from({ length: config.tasks.runs }, (_, number) => ({
        taskId,
        id: config.tasks.runs === 1 ? taskId : `${taskId}-${number}`,
      })),
    ),
  );
  const priorOf = priorFromFile(config);
  const failed = recordings.filter(({ outcome }) => !outcome.success).map((recording) => ({ recording }));
  const searches = await run(
    searchStage,
    failed.flatMap((unit) => {
      const weights = priorOf(unit.recording);
      const prior = weights === undefined ? {} : { prior: weights };
      return config.search.strategies.map((strategy) => ({ ...unit, strategy, ...prior }));
    }),
  );
  const truths = input.simulator === undefined ? [] : await run(truthStage, failed);
  const usable = recordings.filter(({ outcome, notReplayable }) => outcome.success && notReplayable === undefined);
  const injections =
    config.inject.operator === "none"
      ? []
      : await run(
          injectStage,
          usable.map((recording) => ({ recording })),
        );
  return { recordings, searches, injections, truths, dead };
}

/** Reads the file of `search.prior` once, here: workers on other hosts need not have it. */
function priorFromFile({ search }: UnitContext["config"]): (recording: RecordingRecord) => number[] | undefined {
  const source = search.prior === undefined ? undefined : openPrior(search.prior, search.priorStrength);
  if (source?.kind !== "predictions") return () => undefined;
  return ({ id, tape }) =>
    source.weightsFor(
      id,
      tape.calls.map(({ lane }) => lane),
    );
}
