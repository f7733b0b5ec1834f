/**
 * The error catalogue: every failure a user can meet, on one page.
 *
 * An entry says whose side failed, whether trying again can help, which exit code the command line gives and what to do.
 * The place that throws adds what happened and where.
 */

/** Who has to act: the person at the keyboard, a remote server, the program under test, or us. */
export type ErrorSide = "user" | "model server" | "engine" | "system under test" | "rootstep" | "machine";

/** 0 ok · 1 failed work · 2 usage · 3 budget reached · 4 tripwire · 130 interrupted (state saved). */
export const EXIT = { ok: 0, failed: 1, usage: 2, budget: 3, tripwire: 4, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

interface CatalogueEntry {
  readonly side: ErrorSide;
  readonly retryable: boolean;
  readonly exit: ExitCode;
  /** What the reader can do about it. */
  readonly hint: string;
}

const entry = (side: ErrorSide, exit: ExitCode, hint: string, retryable = false): CatalogueEntry => ({
  side,
  exit,
  hint,
  retryable,
});

export const CATALOGUE = {
  // usage and configuration
  USAGE: entry("user", EXIT.usage, "Run the command with --help to see its arguments."),
  CONFIG_INVALID: entry(
    "user",
    EXIT.usage,
    "Correct the named key; `rootstep VERB --help` lists keys, types and defaults.",
  ),
  CONFIG_UNREADABLE: entry("user", EXIT.usage, "Check the path and that the file is YAML."),
  UNKNOWN_NAME: entry("user", EXIT.usage, "Choose one of the names listed; `rootstep list` shows them all."),
  FILE_MISSING: entry("user", EXIT.usage, "Check the path; nothing was read or written."),
  FILE_UNREADABLE: entry(
    "machine",
    EXIT.failed,
    "Check permissions and free disk space, then run again: finished work is kept.",
  ),
  KEY_MISSING: entry(
    "user",
    EXIT.usage,
    "Set the named environment variable; keys are never read from files or flags.",
  ),
  PORT_IN_USE: entry("user", EXIT.usage, "Stop the other program or choose another --port (0 picks a free one)."),

  // data from outside
  DATA_INVALID: entry("user", EXIT.failed, "Correct the named field, or pass --skip-bad to go on without the record."),
  DATA_NOT_JSON: entry(
    "user",
    EXIT.failed,
    "The line is not JSON. Restore it, or pass --skip-bad to go on without it.",
  ),
  DATA_TRUNCATED: entry(
    "user",
    EXIT.failed,
    "The file ends inside a record: copy it again. Records before that line are intact.",
  ),
  DATA_UNKNOWN_FORMAT: entry("user", EXIT.usage, "Name the format with --format; `rootstep list formats` shows them."),
  DATA_CHECKSUM: entry("machine", EXIT.failed, "The shipped file was changed; restore it with `git checkout -- data`."),
  DATA_VERSION: entry(
    "user",
    EXIT.failed,
    "Score with the data that the run was made on, or pass --force to go on all the same: the result is marked.",
  ),
  DATA_DUPLICATE_ID: entry("user", EXIT.failed, "Give every trajectory an id of its own."),
  LABEL_OUTSIDE: entry(
    "user",
    EXIT.failed,
    "The label names a step that the trajectory does not have; correct or drop the label.",
  ),
  VOCABULARY: entry(
    "user",
    EXIT.failed,
    "This checkpoint cannot read that trajectory; choose a tracer with a general tokenizer.",
  ),

  // run folders
  RUN_VERSION: entry(
    "user",
    EXIT.usage,
    "Choose another --out folder, or open this one with the version of rootstep that wrote it.",
  ),
  RUN_MISMATCH: entry(
    "user",
    EXIT.usage,
    "The folder holds a run with other settings: choose another --out, or give the same settings to resume.",
  ),
  RUN_CORRUPT: entry("machine", EXIT.failed, "Restore the file or delete the folder and run again."),
  RUN_LOCKED: entry(
    "user",
    EXIT.usage,
    "Another process writes to this folder: wait for it, or stop it and run again.",
  ),
  INTERRUPTED: entry("user", EXIT.interrupted, "State is saved; run the same command again to go on."),
  BUDGET_REACHED: entry("user", EXIT.budget, "Raise --max-cost or --max-calls and run again: finished work is kept."),

  // model servers
  MODEL_UNREACHABLE: entry("model server", EXIT.failed, "Check that the server runs at that URL.", true),
  MODEL_TIMEOUT: entry(
    "model server",
    EXIT.failed,
    "The server gave no answer in time: raise the time limit or look at the server's load.",
    true,
  ),
  MODEL_RATE_LIMITED: entry(
    "model server",
    EXIT.failed,
    "Lower --concurrency or wait; Retry-After was honoured.",
    true,
  ),
  MODEL_SERVER_ERROR: entry("model server", EXIT.failed, "Look at the server's own log, then run again.", true),
  MODEL_REFUSED_REQUEST: entry(
    "model server",
    EXIT.failed,
    "The server refused the request: check model name, context length and parameters.",
  ),
  MODEL_AUTH: entry("user", EXIT.usage, "Check the API key in the environment and that it may use this model."),
  MODEL_STREAM_CUT: entry("model server", EXIT.failed, "The stream ended before its last event; run again.", true),
  MODEL_BAD_BODY: entry(
    "model server",
    EXIT.failed,
    "The answer is not what an OpenAI-compatible server sends: check that the base URL ends where the API begins (often /v1).",
    true,
  ),
  MODEL_WRONG_SHAPE: entry(
    "model server",
    EXIT.failed,
    "The server's JSON lacks a required field: it is not OpenAI-compatible at that path.",
  ),
  SCRIPT_EXHAUSTED: entry("rootstep", EXIT.failed, "The scripted model got a request that no rule answers; add one."),

  // replay and search
  REPLAY_DIVERGED: entry(
    "system under test",
    EXIT.failed,
    "The program asked for something else than it did when recorded; make it deterministic before the cut.",
  ),
  TAPE_EXHAUSTED: entry(
    "system under test",
    EXIT.failed,
    "The program made more calls than the tape holds; it is not replayable.",
  ),
  TAPE_VERSION: entry("user", EXIT.usage, "Replay the tape with the version of rootstep that recorded it."),
  TAPE_DAMAGED: entry(
    "user",
    EXIT.failed,
    "The tape was edited or cut after it was recorded: copy it again or record anew; `rootstep replay validate` lists every fault.",
  ),
  NO_CALLS: entry(
    "system under test",
    EXIT.failed,
    "Let the program read its base URL from OPENAI_BASE_URL and its key from OPENAI_API_KEY.",
  ),
  SYSTEM_NOT_INSTALLED: entry(
    "user",
    EXIT.usage,
    "Run `rootstep install NAME`; `rootstep list systems` shows what is there.",
  ),
  INTERPRETER_MISSING: entry(
    "user",
    EXIT.usage,
    "Install it (pyenv, uv, apt or nodejs.org) and run the command again.",
  ),
  INSTALL_FAILED: entry(
    "machine",
    EXIT.failed,
    "Read the installer's last lines; what was begun is taken away, run the command again.",
    true,
  ),
  TOOL_UNREACHABLE: entry(
    "system under test",
    EXIT.failed,
    "Check that the tool runs at the address given with --tool NAME=URL.",
  ),
  TOOL_TIMEOUT: entry("system under test", EXIT.failed, "The tool gave no answer in time: look at its own log."),
  SIDE_EFFECTS: entry(
    "user",
    EXIT.usage,
    "A rerun would repeat what the program does outside. Tape its tools (--tool NAME=URL), or insist with --allow-external.",
  ),
  NO_STEPS: entry(
    "system under test",
    EXIT.failed,
    "The run asked no model that answered; look at `rootstep replay show TAPE`.",
  ),
  SYSTEM_FAILED: entry(
    "system under test",
    EXIT.failed,
    "Read the cause; the run is kept as failed and yields no label.",
  ),
  ANALYZER_UNUSABLE: entry(
    "model server",
    EXIT.failed,
    "The analyzer gave no usable correction; choose another model or raise its attempts.",
  ),
  SIMULATOR_CONFUSED: entry(
    "rootstep",
    EXIT.failed,
    "The simulator only answers prompts of rootstep's own systems on its own tasks.",
  ),

  // workers and their queue
  REDIS_UNREACHABLE: entry("user", EXIT.usage, "Check the URL and that Redis runs there; finished work is kept.", true),
  REDIS_AUTH: entry("user", EXIT.usage, "Check user name and password in the Redis URL (ROOTSTEP_REDIS_URL)."),
  REDIS_POLICY: entry(
    "user",
    EXIT.usage,
    "Set `maxmemory-policy noeviction`: any other policy may silently drop jobs and results.",
  ),
  REDIS_FULL: entry(
    "user",
    EXIT.failed,
    "Raise Redis's maxmemory or free some of it, then run again: finished work is kept.",
    true,
  ),
  JOB_TIMEOUT: entry(
    "system under test",
    EXIT.failed,
    "The unit took longer than a worker may spend on it: raise --job-limit, or look for what hangs.",
    true,
  ),
  JOB_VERSION: entry(
    "user",
    EXIT.failed,
    "Let coordinator and workers run the same version, then `rootstep synth status DIR --retry-dead`.",
  ),
  JOB_UNREADABLE: entry(
    "rootstep",
    EXIT.failed,
    "The job is not one of rootstep's: let no other program use its keys.",
  ),
  TASKS_DIFFER: entry(
    "user",
    EXIT.failed,
    "Give the worker the same task files as the coordinator, then `rootstep synth status DIR --retry-dead`.",
  ),
  WORKER_LOST: entry(
    "machine",
    EXIT.failed,
    "Workers died over this unit again and again: look at their memory and logs, then `rootstep synth status DIR --retry-dead`.",
  ),

  // code and checkers
  SANDBOX_UNAVAILABLE: entry(
    "machine",
    EXIT.usage,
    "Install bubblewrap, or pass --unsafe-no-sandbox if you trust the code that models write.",
  ),
  SANDBOX_FAILED: entry(
    "machine",
    EXIT.failed,
    "The sandbox broke, not the program in it: look at the machine's memory and processes, then run again.",
    true,
  ),
  CHECKER_FAILED: entry(
    "rootstep",
    EXIT.failed,
    "The checker could not decide, so the run has no outcome; read what it says about the task.",
  ),
  DATA_NOT_SHIPPED: entry("user", EXIT.usage, "Get the data set where the message says and name it with --tasks.path."),

  // training
  ENGINE_FAILED: entry("engine", EXIT.failed, "Read the cause; the last checkpoint is intact, run again to go on."),
  ENGINE_NAN: entry(
    "engine",
    EXIT.failed,
    "Loss or gradient is not finite: lower the learning rate and resume from the last checkpoint.",
  ),
  RATIO_MISMATCH: entry(
    "engine",
    EXIT.failed,
    "Sampler and trainer disagree at unchanged weights: check that both hold the same checkpoint and sample untruncated.",
  ),
  LAYOUT_INVALID: entry(
    "user",
    EXIT.usage,
    "Change the section cluster: more GPUs, shorter prompts or answers, LoRA, or more tensor parallelism.",
  ),
  SUBMIT_FAILED: entry(
    "user",
    EXIT.failed,
    "Read what the scheduler says; the job's files are written and can be submitted by hand.",
  ),
  SYNC_FAILED: entry(
    "engine",
    EXIT.failed,
    "A server whose update fails often dies or stays paused: restart it, then run again to go on from the last checkpoint.",
  ),
  SYNC_MISMATCH: entry(
    "engine",
    EXIT.failed,
    "The server samples from other weights than the engine trains: restart it, check precision and tied embeddings (vLLM reloads those wrongly), or choose another sync mode.",
  ),
  REWARD_COLLAPSE: entry(
    "engine",
    EXIT.failed,
    "Mean reward fell to zero: lower the learning rate and resume from the best checkpoint.",
  ),
  CHECKPOINT_GONE: entry(
    "engine",
    EXIT.failed,
    "The weights lie with the training server and it has deleted or lost them: name the server that trained them, choose another checkpoint of the run, or serve a copy by name (--served).",
  ),
  CHECKPOINT_CORRUPT: entry(
    "machine",
    EXIT.failed,
    "The checkpoint's checksum does not match; delete that folder and resume from the one before.",
  ),

  INTERNAL: entry("rootstep", EXIT.failed, "This is a fault of ours: please report it with the lines above."),
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof CATALOGUE;

export interface ErrorDetails {
  /** What happened, one sentence, no secrets. */
  readonly what: string;
  /** File:line and field, URL, run folder, step: where it happened. */
  readonly where?: string | undefined;
  /** A hint for this case, in place of the catalogue's. */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
  /** Milliseconds a server asked us to wait (Retry-After). */
  readonly retryAfterMs?: number | undefined;
  /** HTTP status that a server answered with. */
  readonly status?: number | undefined;
  /** Overrides the catalogue where one case of a code differs (a 400 that names a context length, say). */
  readonly retryable?: boolean | undefined;
}

/** Every error rootstep throws on purpose. */
export class RootstepError extends Error {
  override readonly name = "RootstepError";
  readonly code: ErrorCode;
  readonly what: string;
  readonly where: string | undefined;
  readonly hint: string;
  readonly side: ErrorSide;
  readonly retryable: boolean;
  readonly exit: ExitCode;
  readonly retryAfterMs: number | undefined;
  readonly status: number | undefined;

  constructor(code: ErrorCode, details: ErrorDetails) {
    const known: CatalogueEntry = CATALOGUE[code];
    super(details.where === undefined ? details.what : `${details.what} (${details.where})`, { cause: details.cause });
    this.code = code;
    this.what = details.what;
    this.where = details.where;
    this.hint = details.hint ?? known.hint;
    this.side = known.side;
    this.retryable = details.retryable ?? known.retryable;
    this.exit = known.exit;
    this.retryAfterMs = details.retryAfterMs;
    this.status = details.status;
  }
}

/** True for a catalogue error with that code. */
export function isError(error: unknown, code: ErrorCode): error is RootstepError {
  return error instanceof RootstepError && error.code === code;
}

/** Wraps anything thrown that is not ours, so that every error that leaves rootstep is from the catalogue. */
export function asRootstepError(error: unknown): RootstepError {
  if (error instanceof RootstepError) return error;
  const what = error instanceof Error ? error.message : String(error);
  return new RootstepError("INTERNAL", { what, cause: error });
}

/** The lines a person reads: what, where, whose side, what to do, and the chain of causes. */
export function describeError(error: RootstepError): string {
  const lines = [`error ${error.code}: ${error.what}`];
  if (error.where !== undefined) lines.push(`  where: ${error.where}`);
  lines.push(`  side:  ${error.side}`, `  do:    ${error.hint}`);
  for (let cause = error.cause; cause instanceof Error; cause = cause.cause) {
    const code = "code" in cause && typeof cause.code === "string" ? `${cause.code}: ` : "";
    lines.push(`  cause: ${code}${cause.message}`);
  }
  return lines.join("\n");
}
