import { existsSync } from "node:fs";
import Database from "better-sqlite3";
import { z } from "zod";
import { RootstepError } from "../../src/errors.ts";
import { takeCoordinatorLock } from "./coordinator-lock.ts";
import { CREATE_TABLES, LEDGER_VERSION } from "./schema.ts";
import { ledgerError } from "./sqlite-error.ts";

export const LEDGER_FILE = "ledger.sqlite";
export const LOCK_FILE = "coordinator.lock";

/** Who coordinates, as the ledger names it to a second one. */
export interface Coordinator {
  readonly host: string;
  readonly pid: number;
  readonly since: string;
}

const ownerSchema = z.object({ epoch: z.number(), host: z.string(), pid: z.number(), since: z.string() });

export interface OpenLedgerOptions {
  readonly file: string;
  readonly lockFile: string;
  readonly coordinator: Coordinator;
  /** Names this run among others on one Redis; used where the ledger is new. */
  readonly newRunId: () => string;
}

export interface OpenedLedger {
  readonly database: Database.Database;
  readonly runId: string;
  /** Fencing token of this coordinator: one higher than that of any before it. */
  readonly epoch: number;
  release(): void;
}

/**
 * Opens the ledger for writing, as its only coordinator.
 *
 * Commits are `synchronous=NORMAL` in WAL mode: what was committed survives the death of any process; a power failure can
 * undo the last commits but not damage the file, and nothing outside depends on those, because journals are projections of
 * the ledger and jobs are done again by key. So no unit waits for the disk; ends of stages do (`sync`).
 *
 * @throws RootstepError RUN_LOCKED (another coordinator lives), RUN_VERSION, RUN_CORRUPT, FILE_UNREADABLE
 */
export function openDatabase({ file, lockFile, coordinator, newRunId }: OpenLedgerOptions): OpenedLedger {
  const freeLock = takeCoordinatorLock(lockFile);
  if (freeLock === undefined) {
    const owner = existsSync(file) ? ownerOf(file) : undefined;
    const who =
      owner === undefined ? "another process" : `process ${owner.pid} on ${owner.host}, since ${owner.since},`;
    throw new RootstepError("RUN_LOCKED", { what: `${who} coordinates this run`, where: file });
  }
  let database: Database.Database | undefined;
  try {
    const opened = new Database(file, { timeout: 5000 });
    database = opened;
    opened.pragma("journal_mode = WAL");
    opened.pragma("synchronous = NORMAL");
    return opened
      .transaction((): OpenedLedger => {
        const runId = prepareTables(opened, file, newRunId);
        const epoch = takeOffice(opened, coordinator);
        return {
          database: opened,
          runId,
          epoch,
          release() {
            opened.close();
            freeLock();
          },
        };
      })
      .immediate();
  } catch (thrown) {
    database?.close();
    freeLock();
    throw ledgerError(thrown, file);
  }
}

function prepareTables(database: Database.Database, file: string, newRunId: () => string): string {
  const version = requireVersion(database, file);
  if (version === 0) {
    database.exec(CREATE_TABLES);
    database.pragma(`user_version = ${LEDGER_VERSION}`);
    database.prepare("INSERT INTO meta VALUES ('run', ?)").run(newRunId());
  }
  return z.object({ value: z.string() }).parse(database.prepare("SELECT value FROM meta WHERE key = 'run'").get())
    .value;
}

/** @returns 0 for a new file. @throws RootstepError RUN_VERSION */
export function requireVersion(database: Database.Database, file: string): number {
  const version = z.number().parse(database.pragma("user_version", { simple: true }));
  const tables = z
    .object({ n: z.number() })
    .parse(database.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE type = 'table'").get()).n;
  if (version === LEDGER_VERSION || (version === 0 && tables === 0)) return version;
  throw new RootstepError("RUN_VERSION", {
    what: `the ledger has version ${version}, this rootstep writes version ${LEDGER_VERSION}`,
    where: file,
  });
}

function takeOffice(database: Database.Database, { host, pid, since }: Coordinator): number {
  const before = ownerSchema.optional().parse(database.prepare("SELECT * FROM owner").get());
  const epoch = (before?.epoch ?? 0) + 1;
  database.prepare("INSERT OR REPLACE INTO owner VALUES (1, ?, ?, ?, ?)").run(epoch, host, pid, since);
  return epoch;
}

function ownerOf(file: string): z.infer<typeof ownerSchema> | undefined {
  const database = new Database(file, { readonly: true, timeout: 5000 });
  try {
    return ownerSchema.optional().parse(database.prepare("SELECT * FROM owner").get());
  } finally {
    database.close();
  }
}
