import { tmpdir } from "node:os";
import { throwIfInterrupted } from "../../src/interruption.ts";
import type { Secret } from "../../src/models/key.ts";

import { type FoldedCalls, foldRetries } from "../tape/fold.ts";
import type { SideEffects, StoredCall, TapedProgram } from "../tape/folder-schema.ts";
import { tapeHeader } from "../tape/header.ts";
import type { Redactor } from "../tape/redact.ts";
import { createTapeWriter, type TapeWriter } from "../tape/writer.ts";
import { openToolServers } from "../tools/live-tool.ts";
import { addressesOf, type MappedTool, toolEnvironment, toolsInHeader } from "../tools/mapping.ts";
import { recordTools } from "../tools/record-tools.ts";
import { createToolLog } from "../tools/tool-log.ts";
import { createCallLog, createTapeClock } from "./call-log.ts";
import { recordHandler } from "./live.ts";
import { noCallsError, type ProgramOutcome, type ProgramSettings, startBehind } from "./program-run.ts";
import { runRedactor } from "./run-redactor.ts";
import { openSandbox } from "./sandbox.ts";
import { serveProxy } from "./server.ts";
import { createUpstream, type UpstreamLimits } from "./upstream.ts";

export interface RecordOptions extends ProgramSettings {
  /** Folder of the new tape. */
  readonly out: string;
  readonly run: string;
  /** What the tape is to say of the program. */
  readonly program?: TapedProgram | undefined;
  /** As the user or the system declares them. */
  readonly sideEffects?: SideEffects | undefined;
  /** Tools whose traffic goes through the proxy and on the tape. */
  readonly tools?: readonly MappedTool[] | undefined;
  /** What the program shows as its key. */
  readonly token: string;
  readonly upstream: URL;
  readonly upstreamKey?: Secret | undefined;
  readonly limits?: Partial<UpstreamLimits> | undefined;
  readonly port?: number | undefined;
  readonly files?: string | undefined;
  readonly version: string;
  readonly now: () => Date;
}

export interface RecordReport {
  readonly tape: string;
  readonly run: string;
  readonly calls: number;
  /** Attempts that a retry replaced, and calls that failed for good. */
  readonly retried: number;
  readonly failed: number;
  readonly lanes: Readonly<Record<string, number>>;
  /** Exchanges with tools. */
  readonly toolExchanges: number;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
  readonly answer: string | undefined;
}

/**
 * Runs a program once against a model server and keeps everything they say to each other.
 *
 * @throws RootstepError NO_CALLS where the program went past the proxy; USAGE (no such program, a tape is there already);
 * RUN_LOCKED; INTERRUPTED (what was recorded is kept)
 */
export async function recordProgram(options: RecordOptions): Promise<RecordReport> {
  const { tools = [] } = options;
  const redact = runRedactor(options);
  const upstream = createUpstream({ base: options.upstream, key: options.upstreamKey, limits: options.limits });
  const servers = openToolServers(addressesOf(tools));
  const sandbox = openSandbox({ run: options.run, below: tmpdir(), files: options.files });
  let writer: TapeWriter | undefined;
  try {
    writer = createTapeWriter(
      options.out,
      tapeHeader({
        ...options,
        upstream: upstream.shown,
        command: options.command.map(redact),
        tools: toolsInHeader(tools, servers.shown),
      }),
    );
    const calls: StoredCall[] = [];
    const clock = createTapeClock(() => performance.now());
    const log = createCallLog({ writer, redact, clock, onCall: (call) => calls.push(call) });
    const toolFront = recordTools({ servers, log: createToolLog({ writer, redact, clock }), token: options.token });
    const proxy = await serveProxy({
      run: options.run,
      token: options.token,
      handler: recordHandler(upstream, log),
      tools: toolFront.handle,
      port: options.port,
    });
    try {
      const env = { ...options.env, ...toolEnvironment(tools, proxy.toolsUrl) };
      const outcome = await startBehind(proxy, options.token, sandbox, { ...options, env }).finished;
      await proxy.close(); // calls still under way are put on tape as aborted
      toolFront.close();
      endTape(writer, outcome, redact);
      throwIfInterrupted(options.signal);
      if (calls.length === 0) throw noCallsError(proxy, outcome);
      return reportOf(options, foldRetries(calls), writer.toolExchanges, outcome);
    } finally {
      await proxy.close();
    }
  } finally {
    writer?.close();
    if (writer?.calls === 0) writer.discard(); // an empty tape would only stand in the way of the next try
    sandbox.release();
    await servers.close();
    await upstream.close();
  }
}

/** The tape's last line: how the program ended and what it said. */
export function endTape(writer: TapeWriter, outcome: ProgramOutcome, redact: Redactor): void {
  writer.end({
    type: "end",
    calls: writer.calls,
    ...(writer.toolExchanges === 0 ? {} : { tools: writer.toolExchanges }),
    exitCode: outcome.exitCode,
    signal: outcome.signal,
    timedOut: outcome.timedOut,
    stdout: writer.body(Buffer.from(redact(outcome.stdout.toString("utf8")), "utf8")),
    ...(outcome.answer === undefined ? {} : { answer: redact(outcome.answer) }),
  });
}

function reportOf(
  { out, run }: RecordOptions,
  folded: FoldedCalls,
  toolExchanges: number,
  outcome: ProgramOutcome,
): RecordReport {
  const lanes: Record<string, number> = {};
  for (const { lane } of folded.calls) lanes[lane] = (lanes[lane] ?? 0) + 1;
  const { exitCode, signal, timedOut, answer } = outcome;
  return {
    tape: out,
    run,
    calls: folded.calls.length,
    retried: folded.retried.length,
    failed: folded.failed.length,
    lanes,
    toolExchanges,
    exitCode,
    signal,
    timedOut,
    answer,
  };
}
