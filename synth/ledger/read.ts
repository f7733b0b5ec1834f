import { existsSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { z } from "zod";
import { RootstepError } from "../../src/errors.ts";
import { LEDGER_FILE, requireVersion } from "./open.ts";
import { UNIT_STATES, type UnitState } from "./schema.ts";
import { ledgerError } from "./sqlite-error.ts";

export interface StageStatus {
  readonly stage: string;
  readonly units: Readonly<Record<UnitState, number>>;
  readonly total: number;
  /** Of the units that are done. Null where a part of it is not known. */
  readonly cost: {
    readonly calls: number;
    readonly promptTokens: number;
    readonly completionTokens: number;
    readonly nanos: number | null;
  };
  /** Live calls already made for units that are not done. */
  readonly callsUnderWay: number;
  /** Units done per second over the last minute in which any was, or over the stage if it is younger; null before the second unit. */
  readonly perSecond: number | null;
  /** Seconds until the stage is done at that rate; null where there is none. */
  readonly secondsLeft: number | null;
}

export interface DeadLetter {
  readonly stage: string;
  readonly key: string;
  readonly code: string;
  readonly reason: string;
  readonly worker: string;
  readonly attempts: number;
}

export interface RunStatus {
  readonly run: string;
  readonly coordinator: { readonly host: string; readonly pid: number; readonly since: string; readonly epoch: number };
  /** In the order in which they were begun. */
  readonly stages: readonly StageStatus[];
  readonly workers: readonly {
    readonly id: string;
    readonly host: string;
    readonly pid: number;
    readonly version: string;
    readonly slots: number;
    readonly lastSeen: string;
    readonly done: number;
  }[];
  readonly dead: readonly DeadLetter[];
}

const count = z.number();
const stageRow = z.object({
  stage: z.string(),
  queued: count,
  leased: count,
  done: count,
  failed: count,
  dead: count,
  total: count,
  calls: count,
  prompt_tokens: count,
  completion_tokens: count,
  nanos: count.nullable(),
  under_way: count,
  first_done: count.nullable(),
  last_done: count.nullable(),
  recent: count,
});
const ownerRow = z.object({ host: z.string(), pid: count, since: z.string(), epoch: count });
const workerRow = z.object({
  id: z.string(),
  host: z.string(),
  pid: count,
  version: z.string(),
  slots: count,
  last_seen: count,
  done: count,
});
const deadRow = z.object({
  stage: z.string(),
  key: z.string(),
  code: z.string().nullable(),
  reason: z.string().nullable(),
  worker: z.string().nullable(),
  attempts: count,
});

const MINUTE_MS = 60_000;

const STAGES = `
SELECT u.stage AS stage, count(*) AS total,
  ${UNIT_STATES.map((state) => `sum(state = '${state}') AS ${state}`).join(", ")},
  coalesce(sum(calls), 0) AS calls, coalesce(sum(prompt_tokens), 0) AS prompt_tokens,
  coalesce(sum(completion_tokens), 0) AS completion_tokens,
  CASE WHEN sum(state = 'done' AND nanos IS NULL) > 0 THEN NULL ELSE coalesce(sum(nanos), 0) END AS nanos,
  min(done_at) AS first_done, max(done_at) AS last_done,
  (SELECT count(*) FROM units r WHERE r.stage = u.stage AND r.done_at > (SELECT max(done_at) FROM units m WHERE m.stage = u.stage) - ${MINUTE_MS}) AS recent,
  (SELECT coalesce(sum(p.calls), 0) FROM probes p JOIN units o ON o.stage = p.stage AND o.key = p.unit WHERE p.stage = u.stage AND o.state <> 'done')
  + (SELECT coalesce(sum(a.calls), 0) FROM answers a JOIN units o ON o.stage = a.stage AND o.key = a.unit WHERE a.stage = u.stage AND o.state <> 'done') AS under_way
FROM units u WHERE position >= 0 GROUP BY stage ORDER BY min(u.rowid)`;

/**
 * What the ledger of a run says, also while the run is going on.
 * @throws RootstepError FILE_MISSING (no ledger there), RUN_VERSION, RUN_CORRUPT
 */
export function readRunStatus(path: string): RunStatus {
  const file = join(path, LEDGER_FILE);
  if (!existsSync(file)) {
    throw new RootstepError("FILE_MISSING", { what: "there is no ledger: no synth run was begun there", where: path });
  }
  let database: Database.Database | undefined;
  try {
    database = new Database(file, { readonly: true, timeout: 5000 });
    requireVersion(database, file);
    return statusOf(database);
  } catch (thrown) {
    throw ledgerError(thrown, file);
  } finally {
    database?.close();
  }
}

function statusOf(database: Database.Database): RunStatus {
  const run = z.object({ value: z.string() }).parse(database.prepare("SELECT value FROM meta WHERE key = 'run'").get());
  const workers = database.prepare(
    "SELECT w.*, (SELECT count(*) FROM units u WHERE u.worker = w.id AND u.state = 'done') AS done FROM workers w ORDER BY last_seen DESC, id",
  );
  const dead = database.prepare(
    "SELECT stage, key, code, reason, worker, attempts FROM units WHERE state = 'dead' ORDER BY stage, position",
  );
  return {
    run: run.value,
    coordinator: ownerRow.parse(database.prepare("SELECT * FROM owner").get()),
    stages: z.array(stageRow).parse(database.prepare(STAGES).all()).map(stageStatus),
    workers: z
      .array(workerRow)
      .parse(workers.all())
      .map(({ last_seen, ...worker }) => ({ ...worker, lastSeen: new Date(last_seen).toISOString() })),
    dead: z
      .array(deadRow)
      .parse(dead.all())
      .map((row) => ({ ...row, code: row.code ?? "", reason: row.reason ?? "", worker: row.worker ?? "" })),
  };
}

function stageStatus(row: z.infer<typeof stageRow>): StageStatus {
  const { stage, queued, leased, done, failed, dead, total } = row;
  const span = row.first_done === null || row.last_done === null ? 0 : row.last_done - row.first_done;
  const seconds = Math.min(span, MINUTE_MS) / 1000;
  const perSecond = seconds > 0 ? row.recent / seconds : null;
  const left = total - done - dead;
  return {
    stage,
    units: { queued, leased, done, failed, dead },
    total,
    cost: {
      calls: row.calls,
      promptTokens: row.prompt_tokens,
      completionTokens: row.completion_tokens,
      nanos: row.nanos,
    },
    callsUnderWay: row.under_way,
    perSecond,
    secondsLeft: left === 0 ? 0 : perSecond === null ? null : left / perSecond,
  };
}
