import { z } from "zod";

/** Layout version of a tape folder. Another version is refused, never guessed at. */
export const TAPE_FOLDER_VERSION = 1;
export const TAPE_FILE = "tape.jsonl";
export const BODIES_FILE = "bodies.jsonl";

/** none: nothing · workdir: the run's own folders · taped: tools behind the proxy · external: more than that. */
export const SIDE_EFFECTS = ["none", "workdir", "taped", "external"] as const;
export type SideEffects = (typeof SIDE_EFFECTS)[number];

const sha256 = z.string().regex(/^[0-9a-f]{64}$/u, "not a sha256 in hex");
const headers = z.record(z.string(), z.string());

const headerSchema = z.strictObject({
  type: z.literal("tape"),
  version: z.literal(TAPE_FOLDER_VERSION),
  rootstep: z.string(),
  run: z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/u, "not a run id"),
  startedAt: z.string(),
  /** Base URL asked when recording, without user, password, query. */
  upstream: z.string(),
  command: z.array(z.string()),
  /** What the program ran on: a request's schema follows library versions. */
  platform: z.record(z.string(), z.string()),
  /** What rootstep knows of the program: with a system and task it can be run again without naming a command. */
  program: z
    .strictObject({
      system: z.string().exactOptional(),
      task: z.strictObject({ set: z.string(), id: z.string(), text: z.string() }).exactOptional(),
      model: z.string().exactOptional(),
      /** What the determinism preload was given, where the program ran with it; the same again in each rerun. */
      preload: z.strictObject({ seed: z.string(), at: z.iso.datetime() }).exactOptional(),
      /** Versions of its packages, by name. */
      packages: z.record(z.string(), z.string()),
    })
    .exactOptional(),
  /** What a run touches outside its own process, as its user declared; absent: not declared. */
  sideEffects: z.enum(SIDE_EFFECTS).exactOptional(),
  /** Tools behind the proxy by name: base URL without anything secret, and the variable that leads the program there. */
  tools: z.record(z.string(), z.strictObject({ url: z.string(), variable: z.string() })).exactOptional(),
});

const outcome = z.enum(["complete", "cut", "aborted", "unreachable"]);

/** What is kept of every request, to a model or to a tool. */
const sent = { query: z.string().exactOptional(), headers, body: sha256 };

/** What is kept of every answer. */
const response = z.strictObject({
  /** cut: the upstream ended early · aborted: the client left · unreachable: no answer began. */
  outcome,
  status: z.number().int(),
  headers,
  body: sha256,
  /** Byte lengths of the pieces in which the body came, where there was more than one. */
  chunks: z.array(z.number().int().nonnegative()).exactOptional(),
});

const callSchema = z.strictObject({
  type: z.literal("call"),
  /** Order in which requests arrived; lines are in the order in which answers ended. */
  index: z.number().int().nonnegative(),
  lane: z.string(),
  /** wrapper: a `fetch` of that agent's own. */
  laneBy: z.enum(["url", "key", "wrapper", "prompt", "unnamed"]),
  endpoint: z.enum(["chat/completions", "completions", "responses", "embeddings", "models"]),
  /** What the client says of itself (x-stainless-retry-count). */
  retry: z.number().int().nonnegative(),
  from: z.enum(["live", "tape", "action"]),
  /** Milliseconds after the start of the recording. */
  askedAt: z.number(),
  tookMs: z.number(),
  request: z.strictObject({
    ...sent,
    /** sha256 of endpoint and canonical JSON. */
    key: sha256,
  }),
  response,
});

/** One request to a tool and what it answered: HTTP of any kind, MCP over HTTP, or a line of MCP over stdio. */
const toolExchangeSchema = z.strictObject({
  type: z.literal("tool"),
  /** In one count with the calls of models: the order in which requests arrived. */
  index: z.number().int().nonnegative(),
  tool: z.string(),
  /** Which agent asked, where its URL says so. */
  agent: z.string().exactOptional(),
  /** A stand-in for the server's own session id, which is a secret. */
  session: z.string().exactOptional(),
  from: z.enum(["live", "tape"]),
  askedAt: z.number(),
  tookMs: z.number(),
  request: z.strictObject({
    /** STDIO: the body is a line of JSON-RPC. */
    method: z.string(),
    /** Below the tool's base URL. */
    path: z.string(),
    ...sent,
    /** sha256 of what the request asks, see synth/tools/tool-key.ts. */
    key: sha256,
  }),
  response,
});

const endSchema = z.strictObject({
  type: z.literal("end"),
  calls: z.number().int().nonnegative(),
  /** Exchanges with tools. */
  tools: z.number().int().nonnegative().exactOptional(),
  exitCode: z.number().int().nullable(),
  signal: z.string().nullable(),
  timedOut: z.boolean(),
  stdout: sha256,
  /** What the program gave as its answer, by file or as the last JSON line of its output. */
  answer: z.string().exactOptional(),
});

export const tapeRecordSchema = z.discriminatedUnion("type", [headerSchema, callSchema, toolExchangeSchema, endSchema]);

export type TapeHeader = z.infer<typeof headerSchema>;
export type TapedProgram = NonNullable<TapeHeader["program"]>;
export type StoredCall = z.infer<typeof callSchema>;
export type StoredToolExchange = z.infer<typeof toolExchangeSchema>;
export type TapeEnd = z.infer<typeof endSchema>;
export type TapeRecord = z.infer<typeof tapeRecordSchema>;
export type Endpoint = StoredCall["endpoint"];
