import Database from "better-sqlite3";
import { isError } from "../../src/errors.ts";
import { ledgerError } from "./sqlite-error.ts";

/**
 * One coordinator per ledger. The lock is SQLite's own exclusive lock on an empty file: the kernel gives it free when its
 * holder dies, however it dies, so there is no stale lock to judge by process id or clock, on this host or another.
 *
 * @returns what gives it free; undefined where a living process holds it
 * @throws RootstepError FILE_UNREADABLE
 */
export function takeCoordinatorLock(file: string): (() => void) | undefined {
  try {
    const lock = new Database(file, { timeout: 0 });
    try {
      lock.exec("BEGIN EXCLUSIVE");
    } catch (error) {
      lock.close();
      throw error;
    }
    return () => lock.close();
  } catch (thrown) {
    const error = ledgerError(thrown, file);
    if (isError(error, "RUN_LOCKED")) return undefined;
    throw error;
  }
}
