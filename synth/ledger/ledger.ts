import { z } from "zod";
import { RootstepError } from "../../src/errors.ts";
import type { Cost } from "./cost.ts";
import type { Kept } from "./kept.ts";
import { keptStatements } from "./kept-statements.ts";
import { type OpenLedgerOptions, openDatabase } from "./open.ts";
import { UNIT_STATES, type UnitState } from "./schema.ts";
import { ledgerError } from "./sqlite-error.ts";

const unitRowSchema = z.object({
  key: z.string(),
  state: z.enum(UNIT_STATES),
  fence: z.number(),
  attempts: z.number(),
  losses: z.number(),
  code: z.string().nullable(),
  reason: z.string().nullable(),
  result: z.string().nullable(),
});
export type UnitRow = z.infer<typeof unitRowSchema>;

/** The right to end a unit: valid while the unit is leased under this fence. */
export interface Lease {
  readonly stage: string;
  readonly key: string;
  readonly fence: number;
}

/** How a lease ends. */
export type Ending =
  | { readonly state: "done"; readonly result: string; readonly cost: Cost; readonly worker: string }
  /** Given back by a worker that stops: as if it had never been begun. */
  | { readonly state: "queued" }
  | { readonly state: "failed" | "dead"; readonly code: string; readonly reason: string; readonly worker: string }
  /** The worker died: counted apart from failures of the work. */
  | { readonly state: "lost"; readonly reason: string };

export interface SeenWorker {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  /** Units it works on at the same time. */
  readonly slots: number;
}

/** The truth about every unit of a run. Only the coordinator has one; everybody else reads (read.ts). */
export interface Ledger {
  readonly runId: string;
  readonly epoch: number;
  /** Makes known the units of a stage, in their order; those already known keep their state. */
  register(stage: string, keys: readonly string[]): void;
  /** Every unit of a stage that is registered under its present position, in order. */
  units(stage: string): UnitRow[];
  /** Takes a unit that is queued or failed. The fence rises with every lease. */
  lease(stage: string, key: string): Lease;
  /**
   * Ends a lease and keeps the finished parts, in one commit.
   * @returns false where the lease is no longer valid: nothing is written, the result is of no account
   */
  end(lease: Lease, ending: Ending, parts: readonly Kept[]): boolean;
  /** Takes over a result that a journal holds and the ledger lacks. Its cost is not known. */
  adopt(stage: string, key: string, result: string): void;
  /** Keeps a finished part of a leased unit; written at once, or with up to 63 others where parts come fast. */
  keep(unit: Pick<Lease, "stage" | "key">, part: Kept): void;
  kept(stage: string, key: string): Kept[];
  /** Puts units back into the queue with a clean slate: all dead ones, or those named, dead or failed. @returns how many */
  revive(stage?: string, keys?: readonly string[]): number;
  seen(workers: readonly SeenWorker[]): void;
  /** Waits until everything is on the disk. */
  sync(): void;
  close(): void;
}

/** Parts written together: a commit for each would cost more than the part on a fast model. */
const PARTS_PER_COMMIT = 64;
/** On a slow model every part is written at once. */
const LONGEST_WAIT_MS = 200;

export interface LedgerOptions extends OpenLedgerOptions {
  /** Milliseconds since the epoch; for the reader's eyes only, nothing is decided by it. */
  readonly now: () => number;
  /** Milliseconds of a clock that never jumps. */
  readonly monotonic?: () => number;
}

/** @throws RootstepError those of `openDatabase`; every method: FILE_UNREADABLE (disk full), RUN_LOCKED (replaced) */
export function openLedger(options: LedgerOptions): Ledger {
  const { database, runId, epoch, release } = openDatabase(options);
  const { file, now, monotonic = () => performance.now() } = options;
  const parts = keptStatements(database);
  let committedAt = monotonic();
  let waiting: { readonly unit: Pick<Lease, "stage" | "key">; readonly part: Kept }[] = [];

  const inOffice = database.prepare<[number]>("SELECT 1 FROM owner WHERE epoch = ?");
  /** One commit of the coordinator in office, with the parts that wait. */
  const commit = <T>(write: () => T): T => {
    try {
      const result = database
        .transaction(() => {
          if (inOffice.get(epoch) === undefined) {
            throw new RootstepError("RUN_LOCKED", { what: "another coordinator has taken over this run", where: file });
          }
          for (const { unit, part } of waiting) parts.insert(unit, part);
          return write();
        })
        .immediate();
      waiting = [];
      committedAt = monotonic();
      return result;
    } catch (thrown) {
      throw ledgerError(thrown, file);
    }
  };

  const insertUnit = database.prepare<[string, string, number]>(
    "INSERT INTO units (stage, key, position, state) VALUES (?, ?, ?, 'queued') ON CONFLICT DO UPDATE SET position = excluded.position",
  );
  const forget = database.prepare<[string]>("UPDATE units SET position = -1 WHERE stage = ?");
  const select = database.prepare<[string]>(
    "SELECT key, state, fence, attempts, losses, code, reason, result FROM units WHERE stage = ? AND position >= 0 ORDER BY position",
  );
  const take = database.prepare<[string, string]>(
    "UPDATE units SET state = 'leased', fence = fence + 1 WHERE stage = ? AND key = ? AND state IN ('queued', 'failed') RETURNING fence",
  );
  const finish = database.prepare(
    `UPDATE units SET state = 'done', result = @result, worker = @worker, done_at = @at, code = NULL, reason = NULL,
       calls = @calls, prompt_tokens = @promptTokens, completion_tokens = @completionTokens, nanos = @nanos
     WHERE stage = @stage AND key = @key AND fence = @fence AND state = 'leased'`,
  );
  const stop = database.prepare(
    `UPDATE units SET state = @state, attempts = attempts + @attempt, losses = losses + @loss,
       code = coalesce(@code, code), reason = coalesce(@reason, reason), worker = coalesce(@worker, worker)
     WHERE stage = @stage AND key = @key AND fence = @fence AND state = 'leased'`,
  );
  const adoptUnit = database.prepare<[string, number, string, string]>(
    "UPDATE units SET state = 'done', result = ?, done_at = ? WHERE stage = ? AND key = ? AND state <> 'done'",
  );
  const revive = "UPDATE units SET state = 'queued', attempts = 0, losses = 0 WHERE";
  const reviveAll = database.prepare(`${revive} state = 'dead'`);
  const reviveOne = database.prepare<[string, string]>(
    `${revive} state IN ('dead', 'failed') AND stage = ? AND key = ?`,
  );
  const see = database.prepare(
    `INSERT INTO workers VALUES (@id, @host, @pid, @version, @slots, @at, @at)
     ON CONFLICT DO UPDATE SET last_seen = excluded.last_seen, slots = excluded.slots`,
  );

  return {
    runId,
    epoch,
    register: (stage, keys) =>
      commit(() => {
        forget.run(stage);
        keys.forEach((key, position) => {
          insertUnit.run(stage, key, position);
        });
      }),
    units: (stage) => z.array(unitRowSchema).parse(select.all(stage)),
    lease: (stage, key) =>
      commit(() => {
        const row = take.get(stage, key);
        if (row === undefined) throw new Error(`unit ${key} of ${stage} is not there to be leased`);
        return { stage, key, fence: z.object({ fence: z.number() }).parse(row).fence };
      }),
    end: (lease, ending, made) =>
      commit(() => {
        const { stage, key, fence } = lease;
        const changes =
          ending.state === "done"
            ? finish.run({ stage, key, fence, at: now(), ...ending.cost, result: ending.result, worker: ending.worker })
                .changes
            : stop.run({ stage, key, fence, ...stopOf(ending) }).changes;
        if (changes === 0) return false;
        for (const part of made) parts.insert(lease, part);
        return true;
      }),
    adopt: (stage, key, result) => commit(() => void adoptUnit.run(result, now(), stage, key)),
    keep(unit, part) {
      waiting.push({ unit, part });
      if (waiting.length >= PARTS_PER_COMMIT || monotonic() - committedAt >= LONGEST_WAIT_MS) commit(() => {});
    },
    kept(stage, key) {
      if (waiting.length > 0) commit(() => {});
      return parts.select(stage, key);
    },
    revive: (stage, keys) =>
      commit(() =>
        stage === undefined || keys === undefined
          ? reviveAll.run().changes
          : keys.reduce((sum, key) => sum + reviveOne.run(stage, key).changes, 0),
      ),
    seen: (workers) =>
      commit(() => {
        for (const worker of workers) see.run({ ...worker, at: now() });
      }),
    sync() {
      commit(() => {});
      database.pragma("wal_checkpoint(FULL)");
    },
    close() {
      try {
        if (waiting.length > 0) commit(() => {});
      } finally {
        release();
      }
    },
  };
}

function stopOf(ending: Exclude<Ending, { state: "done" }>): {
  readonly state: UnitState;
  readonly attempt: number;
  readonly loss: number;
  readonly code: string | null;
  readonly reason: string | null;
  readonly worker: string | null;
} {
  const nothing = { attempt: 0, loss: 0, code: null, reason: null, worker: null };
  switch (ending.state) {
    case "queued":
      return { ...nothing, state: "queued" };
    case "lost":
      return { ...nothing, state: "queued", loss: 1, reason: ending.reason };
    case "failed":
    case "dead":
      return { ...ending, attempt: 1, loss: 0 };
  }
}
