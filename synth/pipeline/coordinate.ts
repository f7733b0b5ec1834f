import { sha256 } from "../../src/checksum.ts";
import { RootstepError } from "../../src/errors.ts";
import { throwIfInterrupted } from "../../src/interruption.ts";
import { stream } from "../../src/random.ts";

import type { Progress } from "../../src/runs/progress.ts";
import type { RunFolder } from "../../src/runs/run-folder.ts";
import type { Lease, Ledger, UnitRow } from "../ledger/ledger.ts";
import { judge, MAX_LOSSES } from "../queue/failure-policy.ts";
import { type EndedJob, errorOf, type Failure, type Job, type JobQueue } from "../queue/queue.ts";
import { openProjection } from "./projection.ts";
import type { UnitStage } from "./unit-stage.ts";

export interface CoordinatorInput {
  readonly folder: RunFolder;
  readonly ledger: Ledger;
  readonly queue: JobQueue;
  readonly progress: Progress;
  readonly signal?: AbortSignal;
  /** Milliseconds of a clock that never jumps; waits are measured by it. */
  readonly monotonic?: () => number;
}

/** A unit that is not tried again, with what killed it. */
export interface DeadUnit {
  readonly stage: string;
  readonly key: string;
  readonly code: string;
  readonly reason: string;
}

export interface StageRecords<R> {
  readonly records: readonly R[];
  readonly dead: readonly DeadUnit[];
}

interface Leased {
  readonly position: number;
  readonly lease: Lease;
  /** An earlier coordinator has leased it. */
  readonly inherited: boolean;
}

/** Where the first so many units, and all others begun by then, have failed, the fault is not theirs: the run stops. */
const FAILURES_OF_ALL = 3;
/** So often the coordinator looks up, though nothing has ended. */
const LOOK_UP_MS = 1000;

/**
 * Has every unit of a stage done that the ledger does not have, and returns all records in the order of the units.
 *
 * @throws RootstepError INTERRUPTED, BUDGET_REACHED and what concerns every unit (all that is done is in the ledger); the
 * first unit's error where none could be done
 */
export async function runStage<P, R>(
  input: CoordinatorInput,
  stage: UnitStage<P, R>,
  payloads: readonly P[],
): Promise<StageRecords<R>> {
  const { folder, ledger, queue, signal, monotonic = () => performance.now() } = input;
  const keys = payloads.map((payload) => stage.keyOf(payload));
  const positions = new Map(keys.map((key, position) => [key, position]));
  ledger.register(stage.id, keys);
  const positionOf = (record: R): number | undefined => positions.get(stage.keyOfRecord(record));
  const projection = openProjection(folder, stage.file, stage.record, keys.length, positionOf);
  const units = takenOver(input, stage, projection.existing);
  const records: (R | undefined)[] = keys.map(() => undefined);
  const bar = input.progress.stage(stage.title, keys.length, units.filter(({ state }) => state === "done").length);

  const inFlight = new Map<string, Leased>();
  const ready: number[] = [];
  const delayed: { readonly position: number; readonly at: number }[] = [];
  const begun = new Set<number>();
  const failures = new Map<number, RootstepError>();
  let successes = 0;
  let stopping: unknown;

  const jobOf = (position: number, { fence }: Pick<Lease, "fence">, inherited = false): Job => {
    const key = keys[position] ?? "";
    begun.add(position);
    const id = `${ledger.runId}-${stage.id}-${sha256(key).slice(0, 16)}-f${fence}`;
    inFlight.set(id, { position, inherited, lease: { stage: stage.id, key, fence } });
    return { id, stage: stage.id, key, payload: payloads[position], kept: ledger.kept(stage.id, key) };
  };

  const accept = (position: number, result: string): void => {
    const parsed = stage.record.safeParse(JSON.parse(result));
    if (!parsed.success) {
      throw new RootstepError("RUN_CORRUPT", {
        what: `the ledger's record of ${keys[position]} has the wrong shape`,
        where: folder.file("ledger.sqlite"),
        cause: parsed.error,
      });
    }
    records[position] = parsed.data;
    projection.set(position, result);
  };

  const unitOf = (position: number): UnitRow => {
    const unit = units[position];
    if (unit === undefined) throw new Error(`stage ${stage.id} has no unit ${position}`);
    return unit;
  };

  /** Books what became of a job. The ledger decides whether its lease still counts. */
  const book = async ({ id, outcome, error }: EndedJob): Promise<void> => {
    const leased = inFlight.get(id);
    if (leased === undefined) return;
    inFlight.delete(id);
    const { position, lease, inherited } = leased;
    const unit = unitOf(position);
    if (outcome.kind === "done") {
      const result = JSON.stringify(outcome.record);
      const { cost, worker } = outcome;
      if (ledger.end(lease, { state: "done", result, cost, worker }, outcome.parts)) {
        accept(position, result);
        successes++;
        bar.advance();
      }
    } else if (outcome.kind === "lost") {
      const losses = unit.losses + (outcome.workerDied ? 1 : 0);
      units[position] = { ...unit, losses };
      if (losses >= MAX_LOSSES) {
        const what = `${losses} workers died over this unit; the last: ${outcome.reason}`;
        bury(position, lease, new RootstepError("WORKER_LOST", { what }), "", outcome.parts);
      } else {
        ledger.end(
          lease,
          outcome.workerDied ? { state: "lost", reason: outcome.reason } : { state: "queued" },
          outcome.parts,
        );
        ready.push(position);
      }
    } else if (inherited) {
      // A failure of an earlier start says little about this one (another key, another version, a server that is back).
      ledger.end(lease, { state: "queued" }, outcome.parts);
      ready.push(position);
    } else {
      fail(position, lease, outcome, error ?? errorOf(outcome.failure, outcome.worker));
    }
    await queue.settle(id);
  };

  const fail = (
    position: number,
    lease: Lease,
    { failure, worker, parts }: { readonly failure: Failure; readonly worker: string; readonly parts: Job["kept"] },
    error: RootstepError,
  ): void => {
    const unit = unitOf(position);
    const verdict = judge(
      failure,
      worker,
      unit.attempts,
      stream(ledger.epoch, "backoff", stage.id, unit.key, unit.attempts),
    );
    switch (verdict.kind) {
      case "stop":
        ledger.end(lease, { state: "queued" }, parts);
        stopping ??= error;
        return;
      case "give back":
        ledger.end(lease, { state: "queued" }, parts);
        ready.push(position);
        return;
      case "try again":
        units[position] = { ...unit, attempts: unit.attempts + 1 };
        ledger.end(lease, { state: "failed", code: error.code, reason: error.message, worker }, parts);
        failures.set(position, error);
        delayed.push({ position, at: monotonic() + verdict.delayMs });
        break;
      case "bury":
        bury(position, lease, error, worker, parts);
    }
    const noneEver = successes === 0 && !units.some(({ state }) => state === "done");
    const allFailed = begun.size >= FAILURES_OF_ALL && [...begun].every((other) => failures.has(other));
    if (noneEver && allFailed) stopping ??= firstFailure();
  };

  const firstFailure = (): RootstepError | undefined => failures.get(Math.min(...failures.keys()));

  /** That none could be done says nothing about the units: they live. */
  const absolve = (): void => {
    ledger.revive(
      stage.id,
      [...failures.keys()].map((position) => unitOf(position).key),
    );
  };

  const bury = (position: number, lease: Lease, error: RootstepError, worker: string, parts: Job["kept"]): void => {
    const { code, message } = error;
    ledger.end(lease, { state: "dead", code, reason: message, worker }, parts);
    units[position] = { ...unitOf(position), state: "dead", code, reason: message };
    failures.set(position, error);
  };

  /** Leases as many units as the workers can use and hands them over. */
  const fill = async (): Promise<void> => {
    const now = monotonic();
    for (const due of delayed.filter(({ at }) => at <= now)) {
      delayed.splice(delayed.indexOf(due), 1);
      ready.push(due.position);
    }
    ready.sort((a, b) => a - b);
    const room = Math.max(0, queue.window() - inFlight.size);
    const jobs = ready.splice(0, room).map((position) => jobOf(position, ledger.lease(stage.id, keys[position] ?? "")));
    if (jobs.length > 0) await queue.submit(jobs);
  };

  try {
    const submitted: Job[] = [];
    units.forEach((unit, position) => {
      if (unit.state === "done" && unit.result !== null) accept(position, unit.result);
      else if (unit.state === "queued" || unit.state === "failed") ready.push(position);
      // An earlier coordinator has leased it: its job is submitted again under the same id.
      else if (unit.state === "leased") submitted.push(jobOf(position, unit, true));
    });
    if (submitted.length > 0) await queue.submit(submitted);
    while (stopping === undefined && inFlight.size + ready.length + delayed.length > 0) {
      throwIfInterrupted(signal);
      await fill();
      const next = Math.min(...delayed.map(({ at }) => at - monotonic()), LOOK_UP_MS);
      for (const ended of await queue.take(Math.max(0, next), signal)) await book(ended);
    }
    if (stopping !== undefined) throw stopping;
    projection.finish();
    ledger.sync();
  } catch (error) {
    await savedBefore(error, async () => {
      await queue.stop();
      for (const ended of await queue.take(0)) await book(ended);
      if (error === firstFailure()) absolve();
    });
    throw error;
  } finally {
    projection.close();
    bar.finish();
  }

  const done = records.filter((record) => record !== undefined);
  if (done.length === 0 && failures.size > 0) {
    absolve();
    throw firstFailure();
  }
  const dead = units.flatMap(({ state, key, code, reason }) =>
    state === "dead" ? [{ stage: stage.id, key, code: code ?? "", reason: reason ?? "" }] : [],
  );
  return { records: done, dead };
}

/** Saves what can still be saved after a failure, which stays the one to report. */
async function savedBefore(failure: unknown, save: () => Promise<void>): Promise<void> {
  try {
    await save();
  } catch (second) {
    if (failure instanceof Error && failure.cause === undefined) failure.cause = second;
  }
}

/** The units as the ledger has them, after it has taken over what only the journal holds (a ledger lost or never made). */
function takenOver<P, R>({ ledger }: CoordinatorInput, stage: UnitStage<P, R>, existing: readonly R[]): UnitRow[] {
  const units = ledger.units(stage.id);
  const records = new Map(existing.map((record) => [stage.keyOfRecord(record), record]));
  const lacking = units.filter(({ key, state }) => state !== "done" && records.has(key));
  for (const { key } of lacking) ledger.adopt(stage.id, key, JSON.stringify(records.get(key)));
  return lacking.length === 0 ? units : ledger.units(stage.id);
}
