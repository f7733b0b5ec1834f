import { arch, platform, tmpdir } from "node:os";
import { RootstepError } from "../../src/errors.ts";
import type { Secret } from "../../src/models/key.ts";
import { throwIfInterrupted } from "../../src/runs/interrupt.ts";
import { TAPE_FOLDER_VERSION } from "../tape/folder-schema.ts";
import type { TapeFolder } from "../tape/loader.ts";
import type { MatchLevel, MatchOptions } from "../tape/matcher.ts";
import { createRedactor } from "../tape/redact.ts";
import { createTapeWriter } from "../tape/writer.ts";
import type { Action } from "./action.ts";
import { createCallLog } from "./call-log.ts";
import { compareOutcome, type OutcomeComparison } from "./identity.ts";
import { noCallsError, type ProgramSettings, startBehind } from "./program-run.ts";
import { endTape } from "./record-program.ts";
import { replayHandler } from "./replay-handler.ts";
import { openSandbox } from "./sandbox.ts";
import { serveProxy } from "./server.ts";
import { recordingsOf } from "./tape-recordings.ts";
import { createUpstream, type UpstreamLimits } from "./upstream.ts";

export interface ReplayProgramOptions extends ProgramSettings, MatchOptions {
  readonly tape: TapeFolder;
  readonly token: string;
  /** Absent: the whole tape is replayed and nothing is live. */
  readonly cut?: { readonly at: number; readonly action?: Action | undefined } | undefined;
  /** Asked after the cut. */
  readonly upstream?: URL | undefined;
  readonly upstreamKey?: Secret | undefined;
  readonly limits?: Partial<UpstreamLimits> | undefined;
  readonly maxLiveCalls?: number | undefined;
  /** Records the rerun as a tape of its own. */
  readonly out?: string | undefined;
  readonly port?: number | undefined;
  readonly files?: string | undefined;
  readonly version: string;
  readonly now: () => Date;
}

export interface ReplayReport {
  /** Calls of the tape, retries folded. */
  readonly recorded: number;
  /** Answered from the tape or with the action, by how the request matched. */
  readonly levels: Readonly<Record<MatchLevel, number>>;
  readonly actions: number;
  readonly liveCalls: number;
  /** Calls before the cut that the program did not ask for. */
  readonly unplayed: number;
  /** Why the replay was stopped: the first divergence, or the budget. */
  readonly stopped: { readonly code: string; readonly what: string; readonly where: string | undefined } | undefined;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
  readonly answer: string | undefined;
  readonly outcome: OutcomeComparison;
}

/** How long a program may go on after its replay was stopped, to print its own error. In milliseconds. */
const LAST_WORDS_MS = 2_000;

/**
 * Runs a program again against its tape: answers come from the tape before the cut, the action stands at it, the upstream
 * answers after it. Before the cut nothing is ever live; the first request without an answer stops the replay.
 *
 * @throws RootstepError NO_CALLS; USAGE (no such call to cut at, a program that cannot be started); RUN_LOCKED; TAPE_DAMAGED
 */
export async function replayProgram(options: ReplayProgramOptions): Promise<ReplayReport> {
  const { tape, token, cut, upstreamKey } = options;
  const recordings = recordingsOf(tape);
  refuseCut(cut?.at, recordings.calls.length, cut?.action !== undefined);
  const redact = createRedactor([token, ...(upstreamKey === undefined ? [] : [upstreamKey.reveal()])]);
  const upstream =
    options.upstream === undefined || cut === undefined
      ? undefined
      : createUpstream({ base: options.upstream, key: upstreamKey, limits: options.limits });
  const sandbox = openSandbox({ run: tape.header.run, below: tmpdir(), files: options.files });
  const writer =
    options.out === undefined
      ? undefined
      : createTapeWriter(options.out, {
          type: "tape",
          version: TAPE_FOLDER_VERSION,
          rootstep: options.version,
          run: tape.header.run,
          startedAt: options.now().toISOString(),
          upstream: upstream?.shown ?? tape.header.upstream,
          command: options.command.map(redact),
          platform: { node: process.version, os: platform(), arch: arch() },
        });
  let stopProgram = (): void => {};
  let lastWords: NodeJS.Timeout | undefined;
  const replay = replayHandler({
    recordings,
    redact,
    log: createCallLog({ writer, redact, now: () => performance.now() }),
    cut,
    upstream,
    masks: options.masks,
    similarityFloor: options.similarityFloor,
    maxLiveCalls: options.maxLiveCalls,
    onStopped: () => {
      lastWords = setTimeout(() => stopProgram(), LAST_WORDS_MS);
    },
  });
  try {
    const proxy = await serveProxy({ run: tape.header.run, token, handler: replay.handle, port: options.port });
    try {
      const { finished, program } = startBehind(proxy, token, sandbox, options);
      stopProgram = program.stop;
      const outcome = await finished;
      clearTimeout(lastWords);
      await proxy.close();
      if (writer !== undefined) endTape(writer, outcome, redact);
      throwIfInterrupted(options.signal);
      const { levels, actions, liveCalls, unplayed, stopped } = replay;
      const asked = levels.L0 + levels.L1 + levels.L2 + liveCalls;
      if (asked === 0 && stopped === undefined) throw noCallsError(proxy, outcome);
      const { exitCode, signal, timedOut, answer } = outcome;
      return {
        recorded: recordings.calls.length,
        levels,
        actions,
        liveCalls,
        unplayed,
        stopped: stopped === undefined ? undefined : { code: stopped.code, what: stopped.what, where: stopped.where },
        exitCode,
        signal,
        timedOut,
        answer,
        outcome: compareOutcome(tape, outcome, redact),
      };
    } finally {
      clearTimeout(lastWords);
      await proxy.close();
    }
  } finally {
    writer?.close();
    sandbox.release();
    await upstream?.close();
  }
}

function refuseCut(at: number | undefined, calls: number, hasAction: boolean): void {
  if (at === undefined) return;
  // Cutting after the last call without an action is the control: everything from tape, whatever follows live.
  const last = hasAction ? calls - 1 : calls;
  if (Number.isInteger(at) && at >= 0 && at <= last) return;
  throw new RootstepError("USAGE", {
    what: `there is no call ${at} to cut at: the tape holds calls 0 to ${calls - 1}`,
    where: "--cut",
    hint: "`rootstep replay show TAPE` lists them.",
  });
}
