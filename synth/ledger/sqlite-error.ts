import Database from "better-sqlite3";
import { RootstepError } from "../../src/errors.ts";

/** What a failure of SQLite means for the reader; anything else is passed on. */
export function ledgerError(thrown: unknown, file: string): unknown {
  if (!(thrown instanceof Database.SqliteError)) return thrown;
  const details = { where: file, cause: thrown };
  const { code } = thrown;
  if (code === "SQLITE_FULL" || code === "SQLITE_IOERR_WRITE" || code === "SQLITE_IOERR_SHMSIZE") {
    return new RootstepError("FILE_UNREADABLE", {
      ...details,
      what: "the disk is full: the ledger could not be written",
      hint: "Free disk space, then run the same command again: everything recorded before is kept.",
    });
  }
  if (code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB") {
    return new RootstepError("RUN_CORRUPT", {
      ...details,
      what: "the ledger is damaged",
      hint: "Delete ledger.sqlite (with -wal and -shm) and run again: it is rebuilt from the journals beside it.",
    });
  }
  if (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED")) {
    return new RootstepError("RUN_LOCKED", { ...details, what: "another process holds the ledger" });
  }
  return new RootstepError("FILE_UNREADABLE", {
    ...details,
    what: `the ledger could not be read or written (${code})`,
  });
}
