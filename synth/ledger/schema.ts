/** Version of the ledger's tables, kept in SQLite's `user_version`. Another version is refused, never guessed at. */
export const LEDGER_VERSION = 2;

export const UNIT_STATES = ["queued", "leased", "done", "failed", "dead"] as const;

/**
 * queued: not begun, or given back · leased: with a worker, under the fence of that lease · done: result taken ·
 * failed: waits to be tried again · dead: not tried again unless somebody asks.
 */
export type UnitState = (typeof UNIT_STATES)[number];

const COST =
  "calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, nanos INTEGER";

export const CREATE_TABLES = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- The coordinator in office. Every write checks the epoch, so that one who was replaced can no longer write.
CREATE TABLE owner (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  epoch INTEGER NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, since TEXT NOT NULL
) STRICT;

CREATE TABLE units (
  stage TEXT NOT NULL, key TEXT NOT NULL, position INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN (${UNIT_STATES.map((state) => `'${state}'`).join(", ")})),
  fence INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  losses INTEGER NOT NULL DEFAULT 0,
  code TEXT, reason TEXT, worker TEXT,
  result TEXT, done_at INTEGER,
  calls INTEGER, prompt_tokens INTEGER, completion_tokens INTEGER, nanos INTEGER,
  PRIMARY KEY (stage, key),
  CHECK ((state = 'done') = (result IS NOT NULL))
) STRICT;
CREATE INDEX units_by_state ON units (stage, state);

CREATE TABLE probes (
  stage TEXT NOT NULL, unit TEXT NOT NULL,
  trajectory TEXT NOT NULL, step INTEGER NOT NULL, arm TEXT NOT NULL, edit TEXT NOT NULL, replicate INTEGER NOT NULL,
  success INTEGER NOT NULL, live_calls INTEGER NOT NULL, ${COST},
  PRIMARY KEY (stage, unit, trajectory, step, arm, edit, replicate)
) STRICT, WITHOUT ROWID;

CREATE TABLE answers (
  stage TEXT NOT NULL, unit TEXT NOT NULL, trajectory TEXT NOT NULL, request TEXT NOT NULL,
  response TEXT NOT NULL, ${COST},
  PRIMARY KEY (stage, unit, trajectory, request)
) STRICT, WITHOUT ROWID;

CREATE TABLE workers (
  id TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, version TEXT NOT NULL, slots INTEGER NOT NULL,
  first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`;
