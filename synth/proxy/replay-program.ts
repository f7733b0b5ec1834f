import { tmpdir } from "node:os";
import { throwIfInterrupted } from "../../src/interruption.ts";
import type { Secret } from "../../src/models/key.ts";

import type { SideEffects } from "../tape/folder-schema.ts";
import { tapeHeader } from "../tape/header.ts";
import type { TapeFolder } from "../tape/loader.ts";
import type { MatchLevel, MatchOptions } from "../tape/matcher.ts";
import { createSharedPrefix } from "../tape/prefix.ts";
import { createTapeWriter } from "../tape/writer.ts";
import { openToolServers } from "../tools/live-tool.ts";
import { addressesOf, type MappedTool, toolEnvironment, toolsInHeader, toolsOfReplay } from "../tools/mapping.ts";
import { replayTools } from "../tools/replay-tools.ts";
import { refuseExternal } from "../tools/side-effects.ts";
import { createToolLog } from "../tools/tool-log.ts";
import { toolRecordingsOf, toolsBefore } from "../tools/tool-recordings.ts";
import { createCallLog, createTapeClock } from "./call-log.ts";
import { isBefore, type ProxyCut, refuseCut } from "./cut.ts";
import type { OutcomeComparison } from "./identity.ts";
import { noCallsError, type ProgramSettings, startBehind } from "./program-run.ts";
import { endTape } from "./record-program.ts";
import { replayHandler } from "./replay-handler.ts";
import { replayReport } from "./replay-report.ts";
import { runRedactor } from "./run-redactor.ts";
import { openSandbox } from "./sandbox.ts";
import { serveProxy } from "./server.ts";
import { recordingsOf } from "./tape-recordings.ts";
import { createUpstream, type UpstreamLimits } from "./upstream.ts";

export interface ReplayProgramOptions extends ProgramSettings, MatchOptions {
  readonly tape: TapeFolder;
  readonly token: string;
  /** Absent: the whole tape is replayed and nothing is live. */
  readonly cut?: ProxyCut | undefined;
  /** Asked after the cut. */
  readonly upstream?: URL | undefined;
  readonly upstreamKey?: Secret | undefined;
  readonly limits?: Partial<UpstreamLimits> | undefined;
  readonly maxLiveCalls?: number | undefined;
  /** Tools of the recording that answer at other addresses after the cut. */
  readonly tools?: readonly MappedTool[] | undefined;
  /** In the place of what the tape says. */
  readonly sideEffects?: SideEffects | undefined;
  /** Runs the program again though it reaches outside. */
  readonly allowExternal?: boolean | undefined;
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
  /** Exchanges with tools, counted as the calls are. */
  readonly tools: {
    readonly recorded: number;
    readonly levels: Readonly<Record<MatchLevel, number>>;
    readonly live: number;
    readonly unplayed: number;
  };
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
 * answers after it. Tools do the same. Before the cut nothing is ever live; the first request without an answer stops the
 * replay.
 *
 * @throws RootstepError SIDE_EFFECTS; NO_CALLS; USAGE (no such call to cut at, a program that cannot be started); RUN_LOCKED; TAPE_DAMAGED
 */
export async function replayProgram(options: ReplayProgramOptions): Promise<ReplayReport> {
  const { tape, token, cut, upstreamKey } = options;
  const recordings = recordingsOf(tape);
  const toolRecordings = toolRecordingsOf(tape);
  const sideEffects = options.sideEffects ?? tape.header.sideEffects;
  refuseExternal({
    sideEffects,
    isLive: cut !== undefined,
    hasTapedTools: tape.tools.length > 0,
    allowExternal: options.allowExternal === true,
  });
  refuseCut(cut, recordings.calls.length);
  const tools = toolsOfReplay(tape.header, options.tools ?? []);
  const redact = runRedactor(options);
  const upstream =
    options.upstream === undefined || cut === undefined
      ? undefined
      : createUpstream({ base: options.upstream, key: upstreamKey, limits: options.limits });
  const servers = openToolServers(addressesOf(cut === undefined ? [] : tools));
  const sandbox = openSandbox({ run: tape.header.run, below: tmpdir(), files: options.files });
  const writer =
    options.out === undefined
      ? undefined
      : createTapeWriter(
          options.out,
          tapeHeader({
            ...options,
            run: tape.header.run,
            upstream: upstream?.shown ?? tape.header.upstream,
            command: options.command.map(redact),
            program: tape.header.program,
            sideEffects,
            tools: cut === undefined ? tape.header.tools : toolsInHeader(tools, servers.shown),
          }),
        );
  let stopProgram = (): void => {};
  let lastWords: NodeJS.Timeout | undefined;
  const shared = createSharedPrefix(() => {
    lastWords = setTimeout(() => stopProgram(), LAST_WORDS_MS);
  });
  const clock = createTapeClock(() => performance.now());
  const { masks, idPatterns, similarityFloor, maxLiveCalls } = options;
  const log = createCallLog({ writer, redact, clock });
  const replay = replayHandler({
    recordings,
    redact,
    log,
    cut,
    upstream,
    masks,
    idPatterns,
    similarityFloor,
    maxLiveCalls,
    shared,
  });
  const toolReplay = replayTools({
    recordings: toolRecordings,
    redact,
    log: createToolLog({ writer, redact, clock }),
    prefix: cut === undefined ? undefined : toolsBefore(toolRecordings.exchanges, recordings.calls, isBefore(cut)),
    servers,
    masks,
    idPatterns,
    similarityFloor,
    shared,
    token,
  });
  try {
    const { run } = tape.header;
    const proxy = await serveProxy({
      run,
      token,
      handler: replay.handle,
      tools: toolReplay.handle,
      port: options.port,
    });
    try {
      const env = { ...options.env, ...toolEnvironment(tools, proxy.toolsUrl) };
      const { finished, program } = startBehind(proxy, token, sandbox, { ...options, env });
      stopProgram = program.stop;
      const outcome = await finished;
      clearTimeout(lastWords);
      await proxy.close();
      toolReplay.close();
      if (writer !== undefined) endTape(writer, outcome, redact);
      throwIfInterrupted(options.signal);
      const { levels, liveCalls, stopped } = replay;
      const asked = levels.L0 + levels.L1 + levels.L2 + liveCalls;
      if (asked === 0 && stopped === undefined) throw noCallsError(proxy, outcome);
      return replayReport(replay, recordings, tape, outcome, redact, {
        recorded: toolRecordings.exchanges.length,
        levels: { ...toolReplay.levels },
        live: toolReplay.liveExchanges,
        unplayed: toolReplay.unplayed,
      });
    } finally {
      clearTimeout(lastWords);
      await proxy.close();
    }
  } finally {
    writer?.close();
    sandbox.release();
    await servers.close();
    await upstream?.close();
  }
}
