import { asRootstepError, RootstepError } from "../../src/errors.ts";
import { createCallLog } from "../proxy/call-log.ts";
import { passThrough } from "../proxy/live.ts";
import { endTape } from "../proxy/record-program.ts";
import { tapeHeader } from "../tape/header.ts";
import { createTapeWriter } from "../tape/writer.ts";
import { asProgram, type FetchFront, isOver, openFront, type RunOutcome, secretsSeen, watched } from "./front.ts";
import { fetchUpstream, type LiveFetch } from "./upstream.ts";

export interface RecordingFetchOptions extends LiveFetch {
  /** Folder of the new tape. */
  readonly out: string;
  readonly run: string;
  /** Of rootstep. */
  readonly version: string;
  readonly now: () => Date;
  /** What must not stand on the tape, besides the keys that are sent. */
  readonly secrets?: readonly string[] | undefined;
}

export interface RecordingFetch extends FetchFront {
  /** So far, every attempt. */
  readonly calls: number;
  /**
   * Ends the tape; calls still under way are put on it as aborted.
   * @throws RootstepError NO_CALLS (and leaves no tape); FILE_UNREADABLE where something could not be written
   */
  finish(outcome?: RunOutcome): void;
}

/**
 * Records what goes through a `fetch`, chunk for chunk: give it to `new OpenAI({ fetch })` or
 * `createOpenAICompatible({ fetch })`. The tape is the proxy's: either front replays it.
 *
 * @throws RootstepError USAGE where the folder holds a tape; FILE_UNREADABLE
 */
export function recordingFetch(options: RecordingFetchOptions): RecordingFetch {
  const upstream = fetchUpstream(options);
  const secrets = secretsSeen(options.secrets ?? []);
  const writer = createTapeWriter(options.out, tapeHeader({ ...options, upstream: upstream.shown, command: [] }));
  let broken: RootstepError | undefined;
  let finished = false;
  const log = watched(createCallLog({ writer, redact: secrets.redact, now: () => performance.now() }), (error) => {
    broken ??= asRootstepError(error);
    front.close(broken); // a call that is not on tape must not reach the program
  });
  const front = openFront(upstream, secrets, (request, port) => passThrough(upstream, log, log.begin(request), port));
  return {
    fetch: front.fetch,
    forAgent: front.forAgent,
    get calls() {
      return log.calls;
    },
    finish(outcome = {}) {
      if (finished) return;
      finished = true;
      front.close(isOver("the recording is finished"));
      try {
        if (broken !== undefined) throw broken;
        endTape(writer, asProgram(outcome), secrets.redact);
      } finally {
        writer.close();
      }
      if (writer.calls > 0) return;
      writer.discard(); // an empty tape would only stand in the way of the next try
      throw new RootstepError("NO_CALLS", {
        what: "no call went through the recording fetch",
        hint: "Give it to the client: new OpenAI({ fetch }), createOpenAICompatible({ fetch }).",
      });
    },
  };
}
