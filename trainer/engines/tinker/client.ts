import { z } from "zod";
import { RootstepError } from "../../../src/errors.ts";
import { type Clock, systemClock } from "../../../src/models/clock.ts";
import { withPath } from "../../../src/models/server-url.ts";
import { connectTo, type ServerAddress, type ServerRequest } from "../../http.ts";
import type { EngineJournal } from "./journal.ts";
import type { TinkerProfile } from "./profiles.ts";

const sessionSchema = z.looseObject({ session_id: z.string() });
const modelSchema = z.looseObject({ model_id: z.string(), request_id: z.string() });
/** SkyRL writes the id under two names. */
const futureSchema = z.union([
  z.looseObject({ request_id: z.string() }).transform(({ request_id }) => request_id),
  z.looseObject({ future_id: z.string() }).transform(({ future_id }) => future_id),
]);
const capabilitiesSchema = z.looseObject({
  supported_models: z.array(z.looseObject({ model_name: z.string() })),
});
const waitingSchema = z.looseObject({ type: z.literal("try_again") });
const failedSchema = z.looseObject({ error: z.string() });

export interface TinkerClientOptions {
  readonly address: ServerAddress;
  readonly profile: TinkerProfile;
  readonly journal: EngineJournal;
  readonly clock?: Clock;
  /** Milliseconds until a result is given up. A step on a large model may take many minutes. */
  readonly resultMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/** A request whose result comes later. */
export interface TinkerVerb extends Pick<ServerRequest, "path" | "body"> {
  readonly name: string;
  /** A function makes a new body for every attempt: it holds a name that a server may refuse the second time. */
  readonly json?: object | (() => object);
  /** Changes the model: after a lost answer it may or may not have run. */
  readonly changes: boolean;
}

/** Sessions, futures and their hazards; what the verbs mean is the engine's affair. */
export interface TinkerClient {
  readonly name: string;
  supportedModels(): Promise<readonly string[]>;
  createModel(body: Readonly<Record<string, unknown>>): Promise<string>;
  /** Submits and waits. @param signal in place of the session's own @returns the result as the server wrote it */
  run(verb: TinkerVerb, signal?: AbortSignal): Promise<Uint8Array>;
  download(path: string): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** A session that stays silent for 300 s is reaped. */
const HEARTBEAT_MS = 60_000;
const RESULT_MS = 3_600_000;
const SUBMIT_ATTEMPTS = 4;
const RETRY_MS = 500;
/** Between two questions for a result, from a server that does not hold them back itself. */
const FIRST_POLL_MS = 20;
const LONGEST_POLL_MS = 1_000;

/** Opens a session. @throws RootstepError where the server cannot be reached */
export async function openTinkerClient(options: TinkerClientOptions): Promise<TinkerClient> {
  const { profile, journal, clock = systemClock, resultMs = RESULT_MS, signal: sessionSignal } = options;
  const server = connectTo({ ...options.address, url: withPath(options.address.url, "/api/v1") });
  const { session_id } = await server.json(sessionSchema, {
    path: "/create_session",
    json: { tags: ["rootstep"], sdk_version: "rootstep" },
    signal: sessionSignal,
  });
  await journal.note({ event: "session", sessionId: session_id });
  const heartbeat = setInterval(() => {
    // One that fails is made up for by the next, and by every other request of the session.
    server.text({ path: "/session_heartbeat", json: { session_id } }).catch(() => {});
  }, HEARTBEAT_MS);
  heartbeat.unref();

  /** Sends a request, and sends it again where nothing can run twice. */
  async function submit(verb: TinkerVerb, signal: AbortSignal | undefined): Promise<string> {
    const { path, body } = verb;
    for (let attempt = 1; ; attempt++) {
      const json = typeof verb.json === "function" ? verb.json() : verb.json;
      try {
        return await server.json(futureSchema, {
          path,
          signal,
          ...(json !== undefined && { json }),
          ...(body && { body }),
        });
      } catch (error) {
        if (!(error instanceof RootstepError) || signal?.aborted) throw error;
        if (!error.retryable) throw explained(verb, error);
        // The server refused before it began: no harm in asking again. Otherwise it may have begun.
        const neverBegan = error.status === 429 || error.status === 503;
        if (!neverBegan && verb.changes && !profile.deduplicates) throw inDoubt(verb, error);
        if (attempt >= SUBMIT_ATTEMPTS) throw explained(verb, error);
        await clock.sleep((error.retryAfterMs ?? 0) + RETRY_MS * 2 ** (attempt - 1), signal);
      }
    }
  }

  /** The result; undefined where its answer was lost, the server gives it only once, and asking anew does no harm. */
  async function retrieve(
    verb: TinkerVerb,
    requestId: string,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array | undefined> {
    const deadline = clock.now() + resultMs;
    for (let polls = 0, failures = 0; ; polls++) {
      const asked = clock.now();
      try {
        const result = await server.bytes({
          path: "/retrieve_future",
          json: { request_id: requestId },
          accept: `${profile.encoding.accept}, application/json`,
          signal,
        });
        const note = smallJson(result);
        const failure = failedSchema.safeParse(note);
        if (failure.success) throw failed(verb, failure.data.error);
        if (!waitingSchema.safeParse(note).success) return result;
        failures = 0;
      } catch (error) {
        if (!(error instanceof RootstepError) || error.code === "ENGINE_FAILED" || signal?.aborted) throw error;
        const notYet = error.status === 408;
        // The server has forgotten the request: it was restarted between two questions for its result.
        if (error.status === 404 && !verb.changes) return undefined;
        if (error.status === 404 && !profile.resultsStay) throw inDoubt(verb, error);
        if (!notYet) {
          if (!error.retryable) throw explained(verb, error);
          if (!profile.resultsStay) {
            if (verb.changes) throw inDoubt(verb, error);
            return undefined;
          }
          if (++failures >= SUBMIT_ATTEMPTS) throw explained(verb, error);
          await clock.sleep(RETRY_MS * 2 ** (failures - 1), signal);
        }
      }
      if (clock.now() > deadline) throw failed(verb, `no result after ${Math.round(resultMs / 1000)} s`);
      const pause = Math.min(LONGEST_POLL_MS, FIRST_POLL_MS * 2 ** polls) - (clock.now() - asked);
      if (pause > 0) await clock.sleep(pause, signal);
    }
  }

  function explained(verb: TinkerVerb, error: RootstepError): RootstepError {
    return error.code === "MODEL_AUTH" ? error : failed(verb, error.what, error);
  }

  function failed(verb: TinkerVerb, why: string, cause?: RootstepError): RootstepError {
    const hint = cause?.status === undefined ? undefined : STATUS_HINTS[cause.status];
    return new RootstepError("ENGINE_FAILED", { what: `${verb.name} failed: ${why}`, where: server.name, cause, hint });
  }

  function inDoubt(verb: TinkerVerb, cause: RootstepError): RootstepError {
    return new RootstepError("ENGINE_FAILED", {
      what: `the answer to ${verb.name} was lost: the server may have run it or not, and would run it twice if asked again`,
      where: server.name,
      hint: "Run again: training goes on from the last checkpoint.",
      cause,
    });
  }

  const client: TinkerClient = {
    name: server.name,
    async supportedModels() {
      const { supported_models } = await server.json(capabilitiesSchema, {
        path: "/get_server_capabilities",
        signal: sessionSignal,
      });
      return supported_models.map(({ model_name }) => model_name);
    },
    async createModel(body) {
      const json = { session_id, ...body };
      const created = await server.json(modelSchema, { path: "/create_model", json, signal: sessionSignal });
      await journal.note({ event: "model", modelId: created.model_id });
      await retrieve({ name: "create_model", path: "", changes: true }, created.request_id, sessionSignal);
      return created.model_id;
    },
    async run(verb, signal = sessionSignal) {
      for (let attempt = 1; attempt <= SUBMIT_ATTEMPTS; attempt++) {
        const requestId = await submit(verb, signal);
        await journal.note({ event: "submitted", verb: verb.name, requestId });
        const result = await retrieve(verb, requestId, signal);
        await journal.note({ event: "settled", verb: verb.name, requestId });
        if (result !== undefined) return result;
      }
      throw failed(verb, `its result was lost ${SUBMIT_ATTEMPTS} times`);
    },
    download: (path) => server.bytes({ path, accept: "*/*", signal: sessionSignal }),
    async close() {
      clearInterval(heartbeat);
    },
  };
  return client;
}

/** What a refusal means to who reads it; by HTTP status. */
const STATUS_HINTS: Readonly<Record<number, string>> = {
  404: "The server no longer holds the model or the request: it was restarted, or let the session go. Run again: training goes on from the last checkpoint.",
  409: "Another request of the same number has reached the model: see that one process trains it, then run again.",
  415: "The server speaks another encoding: check that engine.profile fits its kind and version.",
};

/** Some servers answer 200 with a note that there is no result yet, or that there will be none. */
function smallJson(result: Uint8Array): unknown {
  if (result.length > 4096 || result[0] !== 0x7b) return undefined;
  try {
    return JSON.parse(Buffer.from(result).toString("utf8"));
  } catch {
    return undefined;
  }
}
