import { z } from "zod";
import { RootstepError } from "../../src/errors.ts";
import { throwIfInterrupted } from "../../src/interruption.ts";

import type { ExecuteJob } from "../queue/work.ts";
import { createMeter, type Meter, meteredModel } from "./meter.ts";
import type { UnitContext } from "./unit-context.ts";
import { createUnitParts, type UnitParts } from "./unit-parts.ts";

/** What the work on one unit gets: models whose cost is metered, the finished parts of earlier attempts, a signal. */
export interface UnitRun extends UnitContext {
  readonly meter: Meter;
  readonly parts: UnitParts;
  readonly signal: AbortSignal;
}

/**
 * A kind of unit. Its payload and the context decide the record: not the worker, the order of arrival, or the attempt.
 */
export interface UnitStage<P, R> {
  readonly id: string;
  /** For the reader. */
  readonly title: string;
  /** Journal of its records, in the order of the units. */
  readonly file: string;
  readonly payload: z.ZodType<P>;
  readonly record: z.ZodType<R>;
  keyOf(payload: P): string;
  keyOfRecord(record: R): string;
  work(payload: P, run: UnitRun): Promise<unknown>;
}

/** A stage as workers have it, whatever its payload is. */
export interface ExecutableStage {
  readonly id: string;
  execute(payload: unknown, run: UnitRun): Promise<unknown>;
}

export function executable<P, R>(stage: UnitStage<P, R>): ExecutableStage {
  return {
    id: stage.id,
    async execute(payload, run) {
      const parsed = stage.payload.safeParse(payload);
      if (!parsed.success) {
        const what = `the payload of a ${stage.id} job has the wrong shape: ${z.prettifyError(parsed.error)}`;
        throw new RootstepError("JOB_UNREADABLE", { what });
      }
      // Through JSON and the schema, so that a record is the same whether it was just made or read back.
      return stage.record.parse(JSON.parse(JSON.stringify(await stage.work(parsed.data, run))));
    },
  };
}

/** Works on jobs of these stages in this process. */
export function unitExecutor(context: UnitContext, stages: readonly ExecutableStage[]): ExecuteJob {
  return async (job, { signal, onPart }) => {
    throwIfInterrupted(signal);
    const stage = stages.find(({ id }) => id === job.stage);
    if (stage === undefined) {
      throw new RootstepError("JOB_UNREADABLE", { what: `there is no stage "${job.stage}"`, where: job.id });
    }
    const { config, model, analyzer } = context;
    const meter = createMeter();
    const record = await stage.execute(job.payload, {
      ...context,
      model: meteredModel(model, config.model, meter),
      analyzer: meteredModel(analyzer, config.analyzer ?? config.model, meter),
      meter,
      parts: createUnitParts(job.kept, onPart),
      signal,
    });
    return { record, cost: meter.total() };
  };
}
