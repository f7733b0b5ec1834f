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
export interface TinkerVerb extends Pick<ServerRequest, "path" | "json" | "body"> {
  readonly name: string;
  /** Changes the model: after a lost answer it may or may not have run. */
  readonly changes: boolean;
}

/** Sessions, futures and their hazards; what the verbs mean is the engine's affair. */
export interface TinkerClient {
  readonly name: string;
  supportedModels(): Promise<readonly string[]>;
  createModel(body: Readonly<Record<string, unknown>>): Promise<string>;
  /** Submits and waits. @returns the result as the server wrote it */
  run(verb: TinkerVerb): Promise<Uint8Array>;
  download(path: string): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** A session that stays silent for 300 s is reaped. */
const HEARTBEAT_MS = 60_000;
const RESULT_MS = 3_600_000;
const SUBMIT_ATTEMPTS = 4;
const RETRY_MS = 500;

/** Opens a session. @throws RootstepError where the server cannot be reached */
export async function openTinkerClient(options: TinkerClientOptions): Promise<TinkerClient> {
  const { profile, journal, clock = systemClock, resultMs = RESULT_MS, signal } = options;
  const server = connectTo({ ...options.address, url: withPath(options.address.url, "/api/v1") });
  const { session_id } = await server.json(sessionSchema, {
    path: "/create_session",
    json: { tags: ["rootstep"], sdk_version: "rootstep" },
    signal,
  });
  await journal.note({ event: "session", sessionId: session_id });
  const heartbeat = setInterval(() => {
    // One that fails is made up for by the next, and by every other request of the session.
    server.text({ path: "/session_heartbeat", json: { session_id } }).catch(() => {});
  }, HEARTBEAT_MS);
  heartbeat.unref();

  /** Sends a request that may be sent again: nothing runs twice. */
  async function submit(verb: TinkerVerb): Promise<string> {
    const { path, json, body } = verb;
    for (let attempt = 1; ; attempt++) {
      try {
        return await server.json(futureSchema, {
          path,
          signal,
          ...(json !== undefined && { json }),
          ...(body && { body }),
        });
      } catch (error) {
        if (!(error instanceof RootstepError) || !error.retryable || signal?.aborted) throw error;
        // The server refused before it began: no harm in asking again. Otherwise it may have begun.
        const neverBegan = error.status === 429 || error.status === 503;
        if (!neverBegan && verb.changes && !profile.deduplicates) throw inDoubt(verb, error);
        if (attempt >= SUBMIT_ATTEMPTS) throw error;
        await clock.sleep((error.retryAfterMs ?? 0) + RETRY_MS * 2 ** (attempt - 1), signal);
      }
    }
  }

  async function retrieve(verb: TinkerVerb, requestId: string): Promise<Uint8Array> {
    const deadline = clock.now() + resultMs;
    for (let failures = 0; ; ) {
      try {
        const result = await server.bytes({
          path: "/retrieve_future",
          json: { request_id: requestId },
          accept: `${profile.encoding.accept}, application/json`,
          signal,
        });
        if (!isWaiting(result)) return result;
      } catch (error) {
        if (!(error instanceof RootstepError) || signal?.aborted) throw error;
        const notYet = error.status === 408;
        if (!notYet && !error.retryable) throw explained(verb, error);
        if (!notYet && verb.changes && !profile.resultsStay) throw inDoubt(verb, error);
        if (!notYet && ++failures >= SUBMIT_ATTEMPTS) throw explained(verb, error);
        if (!notYet) await clock.sleep(RETRY_MS * 2 ** (failures - 1), signal);
      }
      if (clock.now() > deadline) {
        const what = `no result of ${verb.name} after ${Math.round(resultMs / 1000)} s`;
        throw new RootstepError("ENGINE_FAILED", { what, where: server.name });
      }
    }
  }

  function explained(verb: TinkerVerb, error: RootstepError): RootstepError {
    if (error.code === "MODEL_AUTH") return error;
    const what = `${verb.name} failed: ${error.what}`;
    return new RootstepError("ENGINE_FAILED", { what, where: server.name, cause: error });
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
      const { supported_models } = await server.json(capabilitiesSchema, { path: "/get_server_capabilities", signal });
      return supported_models.map(({ model_name }) => model_name);
    },
    async createModel(body) {
      const created = await server.json(modelSchema, { path: "/create_model", json: { session_id, ...body }, signal });
      await journal.note({ event: "model", modelId: created.model_id });
      await retrieve({ name: "create_model", path: "", changes: true }, created.request_id);
      return created.model_id;
    },
    async run(verb) {
      const requestId = await submit(verb);
      await journal.note({ event: "submitted", verb: verb.name, requestId });
      const result = await retrieve(verb, requestId);
      await journal.note({ event: "settled", verb: verb.name, requestId });
      return result;
    },
    download: (path) => server.bytes({ path, accept: "*/*", signal }),
    async close() {
      clearInterval(heartbeat);
    },
  };
  return client;
}

/** Some servers answer 200 with a note that there is no result yet. */
function isWaiting(result: Uint8Array): boolean {
  if (result.length > 1024 || result[0] !== 0x7b) return false;
  try {
    return waitingSchema.safeParse(JSON.parse(Buffer.from(result).toString("utf8"))).success;
  } catch {
    return false;
  }
}
